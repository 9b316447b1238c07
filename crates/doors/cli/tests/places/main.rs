//! One suite for every place: the rules of the tools `terminal` and `process`, by the same test
//! bodies on this machine, in containers of both engines, on a remote host and behind a launcher.
//!
//! A body takes the kind of place and asks it for a [`site::Site`]. A body that is not in the list
//! below is dead code, so it cannot be forgotten.

#[cfg(test)]
mod calls;
#[cfg(test)]
mod containers;
#[cfg(test)]
mod ends;
#[cfg(test)]
mod hosts;
#[cfg(test)]
mod launchers;
#[cfg(test)]
mod lives;
#[cfg(test)]
mod loss;
#[cfg(test)]
mod output;
#[cfg(test)]
mod plain;
#[cfg(test)]
mod processes;
#[cfg(test)]
mod site;
#[cfg(test)]
mod state;
#[cfg(test)]
#[path = "../cli/support/mod.rs"]
#[expect(
    dead_code,
    unused_imports,
    reason = "shared with the other binary, which uses the rest"
)]
mod support;
#[cfg(test)]
mod synced;
#[cfg(test)]
mod terminals;

#[cfg(test)]
macro_rules! on_one_place {
    ($place:ident, $kind:ident, $($module:ident $body:ident)+) => {
        mod $place {
            $(
                #[test]
                fn $body() {
                    crate::$module::$body(crate::site::Kind::$kind);
                }
            )+
        }
    };
}

#[cfg(test)]
macro_rules! on_every_place {
    ($($list:tt)+) => {
        on_one_place!(local, Local, $($list)+);
        on_one_place!(docker, Docker, $($list)+);
        on_one_place!(podman, Podman, $($list)+);
        on_one_place!(ssh, Ssh, $($list)+);
        on_one_place!(command, Command, $($list)+);
    };
}

#[cfg(test)]
on_every_place! {
    calls a_directory_that_cannot_be_entered_is_126_and_nothing_runs
    calls a_workdir_holds_for_one_command_only
    calls arguments_that_make_no_sense_are_refused_and_nothing_runs
    calls calls_at_the_same_time_merge_what_they_changed
    calls credentials_and_our_own_settings_do_not_reach_commands
    calls exit_code_is_the_commands_own
    calls first_calls_at_the_same_time_make_one_place
    calls given_stdin_is_read_whole_and_then_ends
    calls nothing_waits_for_a_person
    calls run_has_the_exit_code_and_both_outputs_of_the_command
    calls the_text_of_a_command_is_read_as_a_file_is
    calls variables_of_a_call_hold_for_one_command_only
    ends a_call_does_not_wait_for_what_is_left_running_and_names_it
    ends a_host_killed_hard_takes_its_command_along_but_not_the_session
    ends a_timeout_above_the_maximum_is_clamped_and_said
    ends a_timeout_ends_the_whole_tree_however_it_hides
    ends an_interrupt_is_130_and_ends_the_whole_tree
    ends death_by_a_signal_is_128_plus_its_number_and_named
    ends nothing_of_a_cancelled_command_shows_up_later
    ends stopped_processes_do_not_hold_the_call
    ends timeout_keeps_the_output_and_is_told_apart_from_an_exit_with_124
    lives a_place_is_listed_removed_and_made_anew
    lives a_place_that_is_gone_is_said_and_its_processes_are_lost
    lives removing_a_place_ends_everything_in_it
    lives two_tasks_never_see_each_other
    output bad_bytes_are_replaced_and_split_characters_are_whole
    output no_byte_is_lost_before_the_exit
    output only_what_a_person_would_see_is_shown
    output stdout_and_stderr_are_in_the_order_they_were_written
    output what_is_too_long_is_cut_in_the_middle_and_kept_whole_in_the_place
    processes a_finished_process_can_be_read_and_asked_and_not_written_to
    processes a_kill_takes_the_whole_tree
    processes a_process_outlives_every_host_with_output_stdin_and_exit_code
    processes a_timeout_holds_for_a_process_that_was_given_one
    processes a_watch_names_the_line_and_no_event_comes_unasked
    processes at_least_the_last_200_kb_are_there
    processes completion_is_told_exactly_once_to_everyone_who_asks
    processes every_way_to_end_is_told_apart
    processes log_pages_by_lines_also_from_the_end
    processes one_wait_lasts_until_a_line_the_exit_or_the_limit
    processes poll_gives_what_is_new_and_the_list_has_it_all
    processes stdin_is_written_line_by_line_and_closed
    processes what_a_command_left_running_is_listed_and_can_be_killed
    state a_command_that_breaks_its_shell_does_no_harm
    state a_directory_that_is_gone_is_said_once_and_the_call_works
    state aliases_functions_options_and_umask_are_carried_over
    state directories_with_awkward_names_are_kept
    state every_byte_survives_in_a_value
    state options_that_would_break_the_next_call_are_not_carried_over
    state plain_variables_end_with_their_command_and_what_is_unset_stays_so
    state the_directory_and_exports_survive_an_exit_with_a_code
    terminals a_command_with_a_terminal_has_one_and_without_has_none
    terminals a_prompt_takes_lines_keys_and_the_end_of_input
    terminals an_editor_is_drawn_resized_edited_in_and_left
}
