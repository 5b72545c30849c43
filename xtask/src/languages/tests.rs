//! Tests of `languages`.

use super::*;

fn manifest(path: &str) -> toml::Table {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    fs::read_to_string(root.join(path))
        .unwrap()
        .parse()
        .unwrap()
}

fn dependencies(manifest: &toml::Table) -> Vec<(String, toml::Value)> {
    let all = manifest["dependencies"]
        .as_table()
        .unwrap()
        .clone()
        .into_iter();
    // Ignore `optional`, which each crate sets on its own.
    let plain = |(name, mut value): (String, toml::Value)| {
        if let Some(table) = value.as_table_mut()
            && table.remove("optional").is_some()
            && table.len() == 1
        {
            value = table["version"].clone();
        }
        (name, value)
    };
    all.filter(|(_, value)| value.get("path").is_none())
        .map(plain)
        .collect()
}

#[test]
fn what_projects_vendor_is_the_sdk_of_the_workspace() {
    let workspace = manifest("Cargo.toml")["workspace"]
        .as_table()
        .unwrap()
        .clone();
    for (member, vendored) in [("plugin-sdk", ""), ("plugin-sdk/macros", "macros/")] {
        let member = manifest(&format!("{member}/Cargo.toml"));
        let vendored = manifest(&format!("plugin-sdk/rust/sdk/{vendored}Cargo.toml"));
        let names = |manifest: &toml::Table| -> Vec<String> {
            manifest["dependencies"]
                .as_table()
                .unwrap()
                .keys()
                .cloned()
                .collect()
        };
        assert_eq!(names(&vendored), names(&member));
        assert_eq!(vendored["package"]["name"], member["package"]["name"]);
        for key in ["version", "edition", "rust-version", "license"] {
            assert_eq!(vendored["package"][key], workspace["package"][key], "{key}");
        }
    }
    for project in ["sdk", "sdk/macros", "template", "plain"] {
        for (name, value) in
            dependencies(&manifest(&format!("plugin-sdk/rust/{project}/Cargo.toml")))
        {
            assert_eq!(value, workspace["dependencies"][&name], "{project}: {name}");
        }
    }
}

#[test]
fn what_is_not_lent_is_installed() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let example = PluginProject::read(&folder.parent().unwrap().join("examples/sqlite")).unwrap();
    for (lent, kept) in [
        (vec![], 3),
        (vec![".venv"], 1),
        (vec!["node_modules"], 2),
        (vec![".venv", "node_modules"], 0),
    ] {
        let mut setup = example.manifest.setup.clone();
        // Nothing is at these paths, so nothing is removed afterwards.
        let paths = lent
            .iter()
            .map(|name| folder.join("no-such-folder").join(name))
            .collect();
        LinkedPackages(paths).remove_install_commands(&mut setup);
        assert_eq!(setup.len(), kept, "{lent:?}: {setup:?}");
    }
}

#[test]
fn every_example_is_built_and_has_a_grant() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let examples = example_projects(root).unwrap();
    assert!(examples.len() >= 3);
    for PluginProject { folder, manifest } in examples {
        assert!(
            Language::from_str(&manifest.language, false).is_ok(),
            "{}",
            manifest.language
        );
        assert_eq!(
            folder.file_name().unwrap().to_str(),
            Some(manifest.name.as_str())
        );
        assert!(
            folder.join(&manifest.name).with_extension("toml").is_file(),
            "{}",
            manifest.name
        );
    }
}

#[test]
fn the_languages_have_an_acceptance_plugin_each() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    for language in Language::value_variants() {
        let name = language.name();
        let project = PluginProject::read(&root.join("tests/languages").join(&name)).unwrap();
        assert_eq!(project.manifest.name, format!("{name}-acceptance"));
    }
}
