//! Tests of `token_removals`.

use super::*;

fn token(name: &str, digit: char, more: &str) -> String {
    format!(
        "[[http.tokens]]\nname = {name:?}\nsha256 = {:?}\n{more}\n",
        digit.to_string().repeat(64)
    )
}

fn config(text: &str) -> Config {
    let flags = Flags {
        plugins: Some(".".into()),
        ..Flags::default()
    };
    Config::from_text(text, &[], &flags).unwrap()
}

/// Name of a token, its tools, and whether it opens the console.
type TokenSummary = (String, Option<Vec<String>>, bool);

/// Returns the remaining tokens of a configuration when its file has this text.
fn remaining_tokens(before: &str, now: &str) -> Option<Vec<TokenSummary>> {
    let narrowed = config(before).with_remaining_tokens(&RemainingTokens::parse(now)?)?;
    assert!(narrowed.http.needs_token(), "a token is still required");
    let texts = |tools: &Vec<NamePattern>| tools.iter().map(ToString::to_string).collect();
    let tokens = narrowed.http.tokens.iter();
    Some(
        tokens
            .map(|token| {
                (
                    token.name.clone(),
                    token.tools.as_ref().map(texts),
                    token.admin,
                )
            })
            .collect(),
    )
}

#[test]
fn a_token_whose_tools_are_missing_keeps_its_previous_ones() {
    let tools = |before: &str, now: &str| {
        let now = config(now).http.tokens.remove(0);
        let tools = config(before).http.with_previous_tools(&now).tools;
        tools.map(|tools| tools.iter().map(ToString::to_string).collect::<Vec<_>>())
    };
    let before = token("ci", 'a', "tools = [\"x\"]");
    let previous_tools = Some(vec!["x".to_owned()]);
    assert_eq!(tools(&before, &token("ci", 'a', "")), previous_tools);
    assert_eq!(
        tools(&before, &token("ci", 'b', "")),
        previous_tools,
        "a rotated token"
    );
    assert_eq!(
        tools(&before, &token("cd", 'a', "")),
        previous_tools,
        "a renamed token"
    );
    assert_eq!(tools(&before, &token("cd", 'b', "")), None, "another token");
    assert_eq!(
        tools(&before, &token("ci", 'b', "tools = [\"y\"]")),
        Some(vec!["y".to_owned()])
    );
}

#[test]
fn a_token_that_was_removed_and_is_added_again_keeps_its_tools() {
    let reload = |running: &Config, text: &str| {
        let remaining = RemainingTokens::parse(text).unwrap();
        let narrowed = running.with_remaining_tokens(&remaining);
        let narrowed = narrowed.unwrap_or_else(|| running.clone());
        narrowed.with_live_settings(&config(text)).unwrap()
    };
    let tools = |config: &Config| {
        let [token] = &*config.http.tokens else {
            panic!("one token: {:?}", config.http.tokens);
        };
        let tools = token.tools.as_ref();
        tools.map(|tools| tools.iter().map(ToString::to_string).collect::<Vec<_>>())
    };
    let previous_tools = Some(vec!["x".to_owned()]);
    let restricted = config(&token("ci", 'a', "tools = [\"x\"]"));
    // The removal counts first, because it takes effect even if the file is invalid.
    let rotated = reload(&restricted, &token("ci", 'b', ""));
    assert_eq!(tools(&rotated), previous_tools);
    let emptied = reload(&restricted, "");
    assert_eq!(emptied.http.tokens, []);
    for again in [
        token("ci", 'a', ""),
        token("ci", 'b', ""),
        token("cd", 'a', ""),
    ] {
        assert_eq!(tools(&reload(&emptied, &again)), previous_tools, "{again}");
    }
    let widened = reload(&emptied, &token("ci", 'b', "tools = [\"*\"]"));
    assert_eq!(tools(&widened), Some(vec!["*".to_owned()]));
    assert_eq!(widened.http.removed_tokens, []);
    assert_eq!(tools(&reload(&emptied, &token("cd", 'b', ""))), None);
    // Rotations do not accumulate.
    let mut running = restricted;
    for digit in "bcdef0123456789".chars() {
        running = reload(&running, &token("ci", digit, ""));
        assert_eq!(tools(&running), previous_tools);
        assert_eq!(running.http.removed_tokens, []);
    }
}

#[test]
fn removals_take_effect_and_additions_do_not() {
    let ada = token("ada", 'a', "");
    let bob = token("bob", 'b', "tools = [\"x.*\", \"y\"]\nadmin = true");
    let both = format!("{ada}{bob}");
    let whole = |name: &str| (name.to_owned(), None, false);
    assert_eq!(remaining_tokens(&both, &ada), Some(vec![whole("ada")]));
    assert_eq!(remaining_tokens(&both, ""), Some(vec![]));
    assert_eq!(
        remaining_tokens(&both, &format!("page_sise = 7\n{ada}")),
        Some(vec![whole("ada")]),
        "a mistake elsewhere"
    );
    // Additions and wider rights wait until the whole file is read.
    assert_eq!(remaining_tokens(&ada, &both), None);
    assert_eq!(
        remaining_tokens(&bob, &token("bob", 'b', "admin = true")),
        None
    );
    let narrower = token("bob", 'b', "tools = [\"x.a\", \"y*\", \"z\"]");
    let tools = ["x.a", "y"].map(str::to_owned).to_vec();
    assert_eq!(
        remaining_tokens(&bob, &narrower),
        Some(vec![("bob".to_owned(), Some(tools), false)])
    );
    // An invalid entry still exists. Its rights are unknown, so they stay.
    assert_eq!(
        remaining_tokens(
            &both,
            &format!("{ada}{}", token("bob", 'b', "tols = [\"q\"]"))
        ),
        None
    );
    // A misspelled key cannot be distinguished from a removed one, and a truncated line is
    // ambiguous.
    assert_eq!(
        remaining_tokens(&both, &both.replace("tokens", "tokns")),
        None
    );
    assert_eq!(remaining_tokens(&both, &both[..both.len() - 3]), None);
}
