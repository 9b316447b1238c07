use super::*;

#[test]
fn the_scripts_survive_single_quotes_of_any_shell() {
    for script in [script::FIND, script::INSTALL, script::LOOK, script::ECHO] {
        for hard in ['\'', '\\', '!', '\n', '\r', '\t'] {
            assert!(!script.contains(hard), "{hard:?} in {script}");
        }
        assert!(!script.contains("/dev/null"), "{script}");
    }
}
