use super::*;

#[test]
fn the_project_of_every_language_is_complete() {
    for language in Language::value_variants() {
        let files = project_files("my-plugin", *language, ProjectKind::Sdk).unwrap();
        let text = |name: &str| {
            let found = files.iter().find(|(path, _)| path == Path::new(name));
            String::from_utf8(
                found
                    .unwrap_or_else(|| panic!("{language:?}: no {name}"))
                    .1
                    .clone(),
            )
            .unwrap()
        };
        let project = ProjectFile::parse(&text("plugin.toml"))
            .unwrap_or_else(|error| panic!("{language:?}: {error}"));
        assert_eq!(
            (project.name.as_str(), project.language),
            ("my-plugin", language.name())
        );
        assert_eq!(
            project.example.unwrap().tool,
            "my_plugin_greet",
            "{language:?}"
        );
        assert!(
            !project.build.is_empty() && !project.watch.is_empty(),
            "{language:?}"
        );
        assert!(
            !project.test.is_empty() && !project.requires.is_empty(),
            "{language:?}"
        );
        text(".gitignore");
        text("README.md");
        assert_eq!(text("toolbay/wit/plugin.wit"), CONTRACT_WIT, "{language:?}");
        for (path, content) in &files {
            let content = String::from_utf8_lossy(content);
            assert!(
                !content.contains("{{name}}") && !content.contains("{{ident}}"),
                "{language:?}: {path:?}"
            );
        }
    }
}

#[test]
fn languages_without_another_form_are_refused() {
    for (kind, wit) in [
        (ProjectKind::Plain, "wit/my-plugin.wit"),
        (ProjectKind::Server, "wit/server.wit"),
    ] {
        let (option, languages) = kind.option();
        for language in Language::value_variants() {
            let is_named = languages
                .split([',', ' '])
                .any(|name| name == language.name());
            match project_files("my-plugin", *language, kind) {
                Ok(files) => assert!(
                    is_named && files.iter().any(|(path, _)| path.ends_with(wit)),
                    "{language:?}"
                ),
                Err(error) => assert_eq!(
                    error.to_string(),
                    format!(
                        "{option} is not available for {}; it is for {languages}",
                        language.name()
                    )
                ),
            }
        }
    }
}

#[test]
fn a_server_has_a_project_without_the_sdk() {
    let files = project_files("my-plugin", Language::Typescript, ProjectKind::Server).unwrap();
    let text = |name: &str| {
        let (_, content) = files
            .iter()
            .find(|(path, _)| path == Path::new(name))
            .unwrap_or_else(|| panic!("no {name}"));
        String::from_utf8(content.clone()).unwrap()
    };
    let project = ProjectFile::parse(&text("plugin.toml")).unwrap();
    assert_eq!(project.example.unwrap().tool, "my_plugin_greet");
    assert!(text("src/server.ts").contains("registerTool"));
    assert!(!files.iter().any(|(path, _)| path.starts_with("toolbay")));
    for (path, _) in &files {
        let content = text(&path.to_string_lossy());
        assert!(
            !content.contains("{{name}}") && !content.contains("{{ident}}"),
            "{path:?}"
        );
    }
}

#[test]
fn names_that_are_invalid_in_some_language_are_refused() {
    for name in ["weather", "my-weather", "a1-b2"] {
        assert!(check_name(name).is_ok(), "{name}");
    }
    for name in [
        "",
        "My-Weather",
        "my_weather",
        "-a",
        "a-",
        "1a",
        "a-1",
        "a b",
        "a.b",
    ] {
        assert!(check_name(name).is_err(), "{name}");
    }
}
