//! What only containers have: images, limits, an engine that can fail, and an end of their own.

mod adoption;
mod births;
mod daemon;
mod environment;
mod hardening;
mod images;
mod lives;
mod pulls;
mod reaper;
mod reports;
mod rootless;
mod settings;
mod troubles;

use serde_json::Value;

use crate::site::Site;
use crate::support::{Answer, Program};

macro_rules! on_both_engines {
    ($($module:ident $body:ident)+) => {
        mod docker {
            $(
                #[test]
                fn $body() {
                    super::$module::$body(crate::site::Kind::Docker);
                }
            )+
        }
        mod podman {
            $(
                #[test]
                fn $body() {
                    super::$module::$body(crate::site::Kind::Podman);
                }
            )+
        }
    };
}

on_both_engines! {
    adoption a_container_of_the_users_is_used_and_left_as_it_was
    hardening every_limit_is_what_was_promised_or_named_as_unenforced
    images an_image_with_an_entrypoint_runs_ours_instead
    images an_image_with_a_user_runs_commands_as_that_user
    images an_image_without_bash_works_with_sh_and_says_so
    images an_image_without_ps_and_timeout_misses_nothing
    lives a_container_removed_in_mid_call_is_a_lost_place_and_the_next_call_works
    lives a_container_outlives_hosts_that_are_killed_with_all_of_its_output
    lives without_persistence_a_container_goes_with_its_host
    pulls a_pull_tells_how_far_it_is
    reaper only_old_ended_containers_of_this_home_are_swept
    reports listings_and_doctor_name_container_image_age_and_idle_time
}

/// Calls the tool `terminal` with more words and variables of the caller.
#[track_caller]
fn start_call_as(
    site: &Site,
    words: &[&str],
    variables: &[(&str, &str)],
    arguments: &Value,
) -> Program {
    let mut command = site.command(["call", "terminal", "-"]);
    command.args(words).envs(variables.iter().copied());
    Program::start(command, arguments.to_string().as_bytes())
}

/// Calls the tool `terminal` to its end, likewise.
#[track_caller]
fn call_as(site: &Site, words: &[&str], variables: &[(&str, &str)], arguments: &Value) -> Answer {
    let ran = start_call_as(site, words, variables, arguments).finish();
    Answer::parse(&ran.out)
}
