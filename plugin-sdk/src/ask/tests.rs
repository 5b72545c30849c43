//! Tests of `ask`.

use super::*;
use crate::Context;

#[derive(Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Colour {
    Red,
    Blue,
}

#[derive(Debug, PartialEq, Deserialize, JsonSchema)]
struct Fields {
    /// The user's name.
    name: String,
    age: Option<u8>,
    colour: Colour,
}

#[test]
fn a_form_has_only_what_clients_can_show() {
    let asked = Form::<Fields>::new("Who?").question();
    assert_eq!(
        asked.params,
        json!({
            "message": "Who?",
            "requestedSchema": {
                "type": "object",
                "properties": {
                    "name": {"type": "string", "description": "The user's name."},
                    "age": {"type": "integer", "minimum": 0, "maximum": 255},
                    "colour": {"type": "string", "enum": ["red", "blue"]}
                },
                "required": ["name", "colour"]
            }
        })
    );
    assert!(asked.required && !Form::<Fields>::new("").optional().question().required);
}

#[test]
fn a_form_is_accepted_declined_or_cancelled() {
    let form = Form::<Fields>::new("Who?");
    let accepted = json!({"action": "accept", "content": {"name": "Ada", "colour": "red"}});
    let fields = Fields {
        name: "Ada".into(),
        age: None,
        colour: Colour::Red,
    };
    assert_eq!(form.answer(accepted).unwrap(), Elicited::Accepted(fields));
    assert_eq!(
        form.answer(json!({"action": "decline"})).unwrap(),
        Elicited::Declined
    );
    assert_eq!(
        form.answer(json!({"action": "cancel"})).unwrap(),
        Elicited::Cancelled
    );
    assert!(
        form.answer(json!({"action": "accept", "content": {}}))
            .is_err()
    );
}

#[test]
fn several_questions_are_asked_at_once() {
    let ctx = Context::test()
        .with_answer("a", json!({"action": "accept"}))
        .with_answer("b", json!({"roots": [{"uri": "file:///w"}]}))
        .with_answer(
            "c",
            json!({"content": [{"type": "text", "text": "x"}, {"type": "text", "text": "y"}]}),
        );
    let visit = Visit::new("Sign in.", "https://example.com");
    let questions = (
        ("a", visit),
        ("b", Roots::new()),
        ("c", Sampling::new(5).system("s").user("u").assistant("v")),
    );
    let (visited, roots, sampled) = ctx.ask_all(questions).unwrap();
    assert_eq!(visited, Elicited::Accepted(()));
    assert_eq!(
        roots,
        [Root {
            uri: "file:///w".into(),
            name: None
        }]
    );
    assert_eq!((sampled.text().as_str(), sampled.model()), ("x\ny", None));
}

#[test]
fn a_question_without_an_answer_fails_in_a_test() {
    let error = Context::test().ask("a", Roots::new()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the test has no answer to the question `a`: add it by `with_answer`"
    );
}
