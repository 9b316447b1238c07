use serde_json::json;

use super::*;

fn package(name: &str, uses: &[&str], uses_in_tests: &[&str]) -> Package {
    let used = |names: &[&str], only_in_tests| {
        names
            .iter()
            .map(|name| Use {
                name: (*name).to_owned(),
                only_in_tests,
            })
            .collect::<Vec<_>>()
    };
    Package {
        name: name.to_owned(),
        uses: [used(uses, false), used(uses_in_tests, true)]
            .into_iter()
            .flatten()
            .collect(),
    }
}

/// The faults that one package adds to a workspace without any.
fn faults_with(package: Package) -> Vec<String> {
    let mut packages: Vec<Package> = DIRECTIONS
        .iter()
        .filter(|(name, _)| !PLANNED.contains(name) && *name != package.name)
        .map(|(name, _)| Package {
            name: (*name).to_owned(),
            uses: Vec::new(),
        })
        .collect();
    packages.push(package);
    faults(&packages)
}

#[test]
fn crates_use_each_other_only_in_the_directions_of_the_design() {
    let faults = faults(&workspace().unwrap());
    assert!(faults.is_empty(), "\n{}", faults.join("\n"));
}

#[test]
fn what_the_table_allows_is_no_fault() {
    let none: [&str; 0] = [];
    assert_eq!(
        faults_with(package(
            "exoshell-mux",
            &["exoshell-wire"],
            &["exoshell-testkit"]
        )),
        none
    );
    assert_eq!(
        faults_with(package(
            "xtask",
            &["exoshell-runtime", "exoshell-wire"],
            &[]
        )),
        none
    );
}

#[test]
fn a_wrong_direction_is_named_also_when_only_tests_use_it() {
    let expected = ["`exoshell-guest` may not use `exoshell-runtime`"];
    assert_eq!(
        faults_with(package("exoshell-guest", &["exoshell-runtime"], &[])),
        expected
    );
    assert_eq!(
        faults_with(package("exoshell-guest", &[], &["exoshell-runtime"])),
        expected
    );
}

#[test]
fn nobody_uses_a_door() {
    for name in ["exoshell-runtime", "xtask", "exoshell-cli"] {
        assert_eq!(
            faults_with(package(name, &[], &["exoshell-cli"])),
            [format!("`{name}` may not use `exoshell-cli`")]
        );
    }
}

#[test]
fn the_test_kit_is_for_tests() {
    assert_eq!(
        faults_with(package("exoshell-place", &["exoshell-testkit"], &[])),
        ["`exoshell-place` may not use `exoshell-testkit`"]
    );
}

#[test]
fn a_crate_that_is_not_in_the_table_is_a_fault() {
    let faults = faults_with(package("exoshell-utils", &[], &[]));
    assert_eq!(faults.len(), 1);
    assert!(
        faults[0].starts_with("`exoshell-utils` is not in the table"),
        "{faults:?}"
    );
}

#[test]
fn a_table_that_is_out_of_date_is_a_fault() {
    let faults = faults_with(package("exoshell-python", &[], &[]));
    assert_eq!(faults.len(), 1);
    assert!(
        faults[0].starts_with("`exoshell-python` exists now"),
        "{faults:?}"
    );

    let faults = super::faults(&[]);
    assert_eq!(faults.len(), DIRECTIONS.len() - PLANNED.len());
    assert!(
        faults[0].starts_with("`exoshell-wire` does not exist"),
        "{faults:?}"
    );
}

#[test]
fn the_table_goes_from_the_bottom_up_and_names_only_itself() {
    for (index, (name, uses)) in DIRECTIONS.iter().enumerate() {
        for used in *uses {
            let lower = DIRECTIONS[..index].iter().any(|(known, _)| known == used);
            assert!(
                lower,
                "`{name}` uses `{used}`, which is not above it in the table"
            );
        }
    }
    for name in PLANNED.iter().chain(DOORS) {
        assert!(allowed(name).is_some(), "`{name}` is not in the table");
    }
}

#[test]
fn foreign_crates_are_left_out_and_dev_dependencies_marked() {
    let metadata = json!({ "packages": [
        { "name": "a", "dependencies": [
            { "name": "b", "kind": null },
            { "name": "b", "kind": "dev" },
            { "name": "serde", "kind": null },
        ] },
        { "name": "b", "dependencies": [{ "name": "a", "kind": "build" }] },
    ] });
    assert_eq!(
        packages_of(&metadata).unwrap(),
        [package("a", &["b"], &["b"]), package("b", &["a"], &[])]
    );
    assert_eq!(packages_of(&json!({})), None);
}
