//! Tests of `secrets`.

use super::*;

const VALUE: &str = "s3cr\"t/value+ü~x!";

fn secrets(values: &[(&'static str, &str)]) -> Result<SecretFilter, String> {
    let value =
        |(name, value): &(&'static str, &str)| Ok((*name, SecretValue::parse(value.as_bytes())?));
    let values = values
        .iter()
        .map(value)
        .collect::<Result<Vec<_>, String>>()?;
    SecretFilter::new(values.iter().map(|(name, value)| (*name, value)))
}

#[test]
fn without_secrets_text_is_unchanged() {
    assert!(matches!(
        SecretFilter::empty().redact("any text"),
        Cow::Borrowed("any text")
    ));
    assert!(!SecretFilter::empty().contains_secret(b"any text"));
}

#[test]
fn a_secret_is_found_in_every_encoding() {
    let secrets = secrets(&[("token", VALUE)]).unwrap();
    let bytes = VALUE.as_bytes();
    let forms = [
        VALUE.to_owned(),
        serde_json::json!({"a": VALUE}).to_string(),
        hex::encode(bytes),
        hex::encode(bytes).to_uppercase(),
        utf8_percent_encode(VALUE, UNRESERVED).to_string(),
        utf8_percent_encode(VALUE, COMPONENT_UNRESERVED).to_string(),
    ];
    for form in forms {
        assert!(
            secrets
                .redact(&format!("a {form} b"))
                .contains("[secret:token]"),
            "{form}"
        );
    }
    for before in ["", "a", "ab", "abc", "Bearer "] {
        let text = format!("{before}{VALUE}, and so on");
        for base64 in [STANDARD_NO_PAD.encode(&text), URL_SAFE_NO_PAD.encode(&text)] {
            assert!(
                secrets.redact(&base64).contains("[secret:token]"),
                "{base64}"
            );
            assert!(secrets.contains_secret(base64.as_bytes()));
        }
    }
}

#[test]
fn secret_is_found_regardless_of_escaping() {
    let secrets = secrets(&[("token", "a&b<c>/d'e\"f+ g=ü\u{1f600}")]).unwrap();
    let forms = [
        // Escapes as written by PHP, Go, Python, .NET and Rust, a URL with digits in either
        // case, a form and a shell.
        r#"a&b<c>\/d'e\"f+ g=\u00fc\ud83d\ude00"#,
        r#"a\u0026b\u003cc\u003e/d'e\"f+ g=ü😀"#,
        r#"a&b<c>/d'e\"f+ g=\u00fc\ud83d\ude00"#,
        r"a\u0026b\u003Cc\u003E/d\u0027e\u0022f\u002B g=\u00FC\uD83D\uDE00",
        r#"a&b<c>/d\'e\"f+ g=\u{fc}\u{1f600}"#,
        "a%26b%3cc%3e%2fd%27e%22f%2b%20g%3d%c3%bc%f0%9f%98%80",
        "a%26b%3Cc%3e/d'e%22f%2B+g%3d%C3%bc%f0%9F%98%80",
        r"a\x26b<c>/d'e\x22f+ g=\xc3\xbc😀",
    ];
    for form in forms {
        let json = |text: &str| serde_json::to_string(text).unwrap();
        let percent = |text: &str| utf8_percent_encode(text, UNRESERVED).to_string();
        let written = [
            form.to_owned(),
            json(form),
            json(&json(form)),
            percent(form),
            percent(form).to_lowercase(),
            json(&percent(form)),
        ];
        for text in written {
            let redacted = secrets.redact(&text).into_owned();
            let remaining = redacted.replace("[secret:token]", "");
            assert!(
                remaining.chars().all(|c| matches!(c, '"' | '\\')),
                "{text} became {redacted}"
            );
            assert!(secrets.contains_secret(text.as_bytes()), "{text}");
        }
    }
    let base64 = STANDARD_NO_PAD.encode("a&b<c>/d'e\"f+ g=ü\u{1f600}");
    let wrapped = base64
        .as_bytes()
        .chunks(10)
        .map(|line| String::from_utf8_lossy(line))
        .collect::<Vec<_>>();
    for text in [
        wrapped.join("\r\n"),
        base64.replace('/', "\\/"),
        base64.replace('/', "%2f"),
    ] {
        assert!(
            secrets.redact(&text).starts_with("[secret:token]"),
            "{text}"
        );
    }
}

#[test]
fn overlapping_secrets_are_both_redacted() {
    let secrets = secrets(&[("a", "12345678"), ("b", "56789abcd"), ("c", "34567890")]).unwrap();
    assert_eq!(secrets.redact("x123456789abcdx"), "x[secret:b]x");
    assert_eq!(secrets.redact("123456781234567"), "[secret:a]1234567");
    assert_eq!(
        secrets.redact(r"1234567\u0038 9\n12345678"),
        r"[secret:a] 9\n[secret:a]"
    );
    assert_eq!(secrets.redact("1234567890"), "[secret:a]");
}

#[test]
fn control_characters_do_not_hide_a_secret() {
    let secrets = secrets(&[("token", VALUE)]).unwrap();
    for between in [
        "\0",
        "\u{1b}[0m",
        "\u{202e}",
        "\u{9b}2J",
        "\r\n",
        "\u{e0041}",
    ] {
        let text: String = VALUE
            .chars()
            .flat_map(|c| [c.to_string(), between.to_owned()])
            .collect();
        let scrubbed = secrets.scrub(&text).into_owned();
        assert_eq!(scrubbed.trim_end(), "[secret:token]", "{between:?}");
    }
    assert!(matches!(secrets.scrub("plain"), Cow::Borrowed("plain")));
    assert_eq!(secrets.scrub("a\0b"), "ab");
}

#[test]
fn truncated_text_ends_before_a_partial_secret() {
    let secrets = secrets(&[("token", VALUE), ("number", "12345678")]).unwrap();
    let text = format!("before {VALUE}");
    for cut in text.char_indices().map(|(at, _)| at).skip("before ".len()) {
        assert_eq!(secrets.scrub_truncated(&text[..cut]), "before ", "{cut}");
    }
    assert_eq!(
        secrets.scrub_truncated("123456780 123456781234"),
        "[secret:number]0 [secret:number]"
    );
    assert_eq!(
        secrets.scrub_truncated(r"before s3cr\u0022t\/value\u002"),
        "before "
    );
    assert_eq!(secrets.scrub_truncated("before s3cr%22t%2"), "before ");
    assert_eq!(
        secrets.scrub_truncated(&format!("before {}", &hex::encode(VALUE)[..9])),
        "before "
    );
    assert_eq!(
        SecretFilter::empty().scrub_truncated("before s3cr\0"),
        "before s3cr"
    );
}

#[test]
fn surrounding_text_is_unchanged() {
    let secrets = secrets(&[("a", "12345678"), ("b", "abcdefgh\n")]).unwrap();
    assert_eq!(
        secrets.redact("ü12345678-abcdefgh12345678ü"),
        "ü[secret:a]-[secret:b][secret:a]ü"
    );
    assert_eq!(secrets.redact("1234567 8"), "1234567 8");
}

#[test]
fn each_long_line_of_a_multi_line_secret_is_redacted() {
    let secrets = secrets(&[(
        "key",
        "-----BEGIN-----\nMIIEvQIBADANBgkqhkiG\n-----END-----\n",
    )])
    .unwrap();
    assert_eq!(
        secrets.redact("see MIIEvQIBADANBgkqhkiG and -----END-----"),
        "see [secret:key] and -----END-----"
    );
}

#[test]
fn shared_and_caller_secrets_are_found_together() {
    let finder = |name, text: &str| {
        let value = SecretValue::parse(text.as_bytes()).unwrap();
        Arc::new(SecretFinder::new([(name, &value)]).unwrap().unwrap())
    };
    let both =
        SecretFilter::from_finders([finder("shared", "12345678"), finder("own", "56789abcd")]);
    assert_eq!(both.redact("x123456789abcdx"), "x[secret:own]x");
    assert_eq!(
        both.redact("12345678 56789abcd"),
        "[secret:shared] [secret:own]"
    );
    assert_eq!(both.scrub_truncated("12345678 56789a"), "[secret:shared] ");
    assert_eq!(
        format!("{both:?}"),
        r#"{"[secret:own]", "[secret:shared]"}"#
    );
}

#[test]
fn memory_is_proportional_to_the_secret() {
    let text: String = (0..8_192_u32)
        .map(|i| char::from(b'!' + u8::try_from(i * i % 89).unwrap()))
        .collect();
    let value = SecretValue::parse(text.as_bytes()).unwrap();
    let finder = SecretFinder::new([("key", &value)]).unwrap().unwrap();
    assert!(
        finder.memory_bytes() < 1_000 * text.len(),
        "{}",
        finder.memory_bytes()
    );
    let secrets = SecretFilter::from_finders([Arc::new(finder)]);
    assert_eq!(secrets.redact(&format!("a {text} b")), "a [secret:key] b");
}

#[test]
fn debug_output_does_not_show_values() {
    assert_eq!(
        format!("{:?}", secrets(&[("token", VALUE)]).unwrap()),
        r#"{"[secret:token]"}"#
    );
}
