use proptest::prelude::*;

use super::*;

fn digest(byte: u8) -> Digest {
    Digest::new([byte; 32])
}

fn item(fields: &[(&str, &str)]) -> ItemPin {
    fields
        .iter()
        .map(|(key, text)| ((*key).to_owned(), (*text).to_owned()))
        .collect()
}

fn sample() -> LockFile {
    let weather = PluginPin {
        component: Some(digest(1)),
        grant: Some(digest(2)),
        about: Some("Weather forecasts".to_owned()),
        imports: ["wasi:http/outgoing-handler@0.2.3".to_owned()].into(),
        permissions: ["http: GET https://api.example.com/".to_owned()].into(),
        items: [(
            (ItemKind::Tool, "forecast".to_owned()),
            item(&[
                (
                    "description",
                    "Returns the \"forecast\".\nIn words.\u{202e}",
                ),
                ("input_schema", "{\n  \"type\": \"object\"\n}"),
            ]),
        )]
        .into(),
    };
    let plugins = [
        ("weather".to_owned(), weather),
        ("müller \"1\"".to_owned(), PluginPin::default()),
    ];
    LockFile {
        plugins: plugins.into(),
    }
}

#[test]
fn text_is_sorted_and_shows_words_and_invisible_characters() {
    let text = sample().render();
    insta::assert_snapshot!(text);
    assert_eq!(LockFile::parse(&text).unwrap(), sample());
}

#[test]
fn mistakes_are_errors_with_their_place() {
    for (text, message) in [
        ("", "1:1: the key `version` is missing"),
        (
            "version = 2",
            "its format has version 2, and this server reads version 1",
        ),
        (
            "version = 1\n[plugin.a]\ncomponent = \"sha256:00\"",
            "plugin.a: component: expected \"sha256:\" and 64 hexadecimal digits, not \"sha256:00\"",
        ),
        (
            "version = 1\n[plugins.a]\n",
            "2:2: unknown key `plugins`; did you mean `plugin`?",
        ),
        (
            "version = 1\n[plugin.a]\ncomponents = \"x\"",
            "3:1: unknown key `components`; did you mean `component`?",
        ),
    ] {
        let text = format!("{text}\n{END_LINE}\n");
        let error = LockFile::parse(&text).unwrap_err().to_string();
        assert!(error.contains(message), "{text:?}: {error}");
    }
}

#[test]
fn truncated_text_is_an_error() {
    let text = sample().render();
    for end in (0..text.len() - 1).filter(|end| text.is_char_boundary(*end)) {
        let error = LockFile::parse(&text[..end]).unwrap_err().to_string();
        assert!(error.contains("its last line is not"), "{end}: {error}");
    }
}

proptest! {
    #[test]
    fn any_pin_survives_a_round_trip(
        id in ".{1,20}",
        import in "\\PC{0,20}",
        name in ".{0,20}",
        field in ".{0,10}",
        text in "(?s).{0,80}",
        kind in 0_usize..6,
    ) {
        let pin = PluginPin {
            component: Some(digest(9)),
            grant: None,
            about: Some(text.clone()),
            imports: [import].into(),
            permissions: [text.clone()].into(),
            items: [((ItemKind::ALL[kind], name), [(field, text)].into())].into(),
        };
        let lock = LockFile { plugins: [(id, pin)].into() };
        prop_assert_eq!(LockFile::parse(&lock.render()).unwrap(), lock);
    }
}
