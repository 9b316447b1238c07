use std::collections::BTreeSet;

use super::*;

#[test]
fn every_key_has_a_table_a_unique_name_and_one_line_of_help() {
    let names: BTreeSet<_> = all().map(|key| key.name).collect();
    assert_eq!(names.len(), all().count());
    for key in all() {
        let (table, name) = key.parts();
        assert!(
            !table.is_empty() && !name.is_empty() && !name.contains('.'),
            "{}",
            key.name
        );
        assert!(
            key.help.ends_with('.') && !key.help.contains('\n'),
            "{}",
            key.name
        );
        assert!(!key.slot.takes().is_empty());
    }
}

#[test]
fn no_variable_sets_two_keys() {
    let variables: Vec<_> = all().filter_map(|key| key.variable).collect();
    assert_eq!(
        variables.iter().collect::<BTreeSet<_>>().len(),
        variables.len()
    );
}

#[test]
fn every_field_of_a_layer_is_a_key() {
    let layer = serde_json::to_value(super::super::Config::default()).unwrap();
    let mut fields = BTreeSet::new();
    for (table, entries) in layer.as_object().unwrap() {
        fields.extend(
            entries
                .as_object()
                .unwrap()
                .keys()
                .map(|name| format!("{table}.{name}")),
        );
    }
    assert_eq!(fields, all().map(|key| key.name.to_owned()).collect());
}
