use super::*;

fn deletes(command: &str) -> bool {
    let context = Context::new("/home/ada/work/project", "/home/ada");
    let finding = Guard::new().check(command, &context);
    let mut keys = finding.keys.iter();
    keys.any(|key| key.category == Category::RecursiveDelete)
}

fn verdict(command: &str) -> Verdict {
    let context = Context::new("/home/ada/work/project", "/home/ada");
    Guard::new().check(command, &context).verdict
}

#[test]
fn what_bash_evaluates_once_more_is_walked() {
    let wrong: Vec<&str> = include_str!("examples/evaluated.txt")
        .lines()
        .filter(|line| !line.starts_with('#') && !deletes(line))
        .collect();
    assert_eq!(wrong, Vec::<&str>::new());
}

#[test]
fn a_wrapper_hides_its_command_behind_no_option() {
    let wrong: Vec<&str> = include_str!("examples/wrapped.txt")
        .lines()
        .filter(|line| !line.starts_with('#') && !deletes(line))
        .collect();
    assert_eq!(wrong, Vec::<&str>::new());
}

#[test]
fn honest_evaluations_and_wrappers_pass() {
    for command in [
        "declare -i n=1; n=n+1; echo $((n * 2))",
        "declare -n r=name; echo \"$r\"",
        "a=(1 2); i=0; echo ${a[i]} ${a[i+1]}",
        "for ((i=0; i<3; i++)); do echo $i; done",
        "[[ $n -eq 1 ]] && echo one",
        "x='a b'; echo ${x@Q} ${x@U}",
        "MAKEFLAGS=-j8 make",
        "cp /bin/ls x; ./x -la",
        "cp src/main.rs x; ./x",
        "cp target/release/tool bin/; bin/tool --help",
        "compgen -W 'a b c' a",
        "unshare --mount-proc ls",
        "nsenter -t 1 -n ip addr",
        "prlimit -n100 cargo test",
        "taskset -c 0 make",
        "perf record -g ./bench",
        "xvfb-run -a npm test",
        "bwrap --ro-bind / / ls",
        "docker run --rm --name redis -d redis",
    ] {
        assert_eq!(verdict(command), Verdict::Allow, "{command}");
    }
    assert_eq!(verdict("echo \"${x@P}\""), Verdict::Ask);
    assert_eq!(verdict("MAKEFLAGS=--eval=x make"), Verdict::Ask);
    assert_eq!(
        verdict("ln -s /usr/bin/git g && ./g push --force"),
        Verdict::Ask
    );
}
