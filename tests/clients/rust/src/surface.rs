//! What a server offers beside tools, and what its plugins ask. The plugin is that of the
//! conformance suite.

use anyhow::{Context as _, Result};
use rmcp::ServiceError;
use rmcp::model::{
    ElicitationAction, GetPromptRequestParams, ReadResourceRequestParams, ServerNotification,
    SubscribeRequestParams, SubscriptionFilter,
};
use serde_json::{Value, json};

use crate::checks::Checks;
use crate::{Conversation, text};

const WATCHED: &str = "test://watched-resource";
const TEMPLATE: &str = "test://template/{id}/data";

/// Looks at everything that the revision has.
pub(crate) async fn converse(
    at: &mut Conversation,
    revision: &str,
    checks: &mut Checks,
) -> Result<()> {
    offers(at, checks).await?;
    update(at, revision, checks).await?;
    model_and_roots(at, checks).await?;
    if revision >= "2025-06-18" {
        forms(at, checks).await?;
    } else {
        let refused = at
            .call("test_elicitation", json!({"message": "Who?"}))
            .await;
        checks.check(
            "a revision without forms is told so",
            code(&refused).is_some(),
            refused,
        );
    }
    if revision >= "2025-11-25" {
        page(at, checks).await
    } else {
        let refused = at.call("test_elicitation_url", json!({})).await;
        checks.check(
            "a revision without pages is told so",
            code(&refused).is_some(),
            refused,
        );
        Ok(())
    }
}

async fn offers(at: &Conversation, checks: &mut Checks) -> Result<()> {
    let client = &at.client;
    let prompts: Vec<_> = client
        .list_all_prompts()
        .await?
        .into_iter()
        .map(|prompt| prompt.name)
        .collect();
    checks.check(
        "lists prompts",
        prompts
            .iter()
            .any(|name| name == "test_prompt_with_arguments"),
        &prompts,
    );
    let get = |arguments: Value| {
        let arguments = arguments.as_object().cloned().unwrap_or_default();
        client.get_prompt(
            GetPromptRequestParams::new("test_prompt_with_arguments").with_arguments(arguments),
        )
    };
    let got = json!(get(json!({"arg1": "one", "arg2": "two"})).await?);
    let said = "Prompt with arguments: arg1='one', arg2='two'";
    checks.check(
        "gets a prompt",
        got["messages"][0]["content"]["text"] == said,
        &got,
    );
    let refused = get(json!({"arg1": "one"})).await;
    let named = "a prompt without an argument that it needs is error -32602";
    checks.check(named, code(&refused) == Some(-32602), refused);

    let uris: Vec<_> = client
        .list_all_resources()
        .await?
        .into_iter()
        .map(|resource| resource.uri.clone())
        .collect();
    checks.check(
        "lists resources",
        uris.iter().any(|uri| uri == WATCHED),
        &uris,
    );
    let templates = client.list_all_resource_templates().await?;
    let templates: Vec<_> = templates
        .into_iter()
        .map(|template| template.uri_template.clone())
        .collect();
    checks.check(
        "lists templates",
        templates.iter().any(|template| template == TEMPLATE),
        &templates,
    );
    let item = read(at, "test://static-text").await?;
    checks.check(
        "reads a text",
        item["text"] == "This is the content of the static text resource.",
        &item,
    );
    let item = read(at, "test://static-binary").await?;
    let png = item["blob"]
        .as_str()
        .is_some_and(|blob| blob.starts_with("iVBORw0KGgo"));
    checks.check("reads bytes", png, &item);
    let item = read(at, "test://template/7/data").await?;
    let data: Value = serde_json::from_str(item["text"].as_str().unwrap_or_default())?;
    checks.check(
        "reads what fits a template",
        data["data"] == "Data for ID: 7",
        &item,
    );
    let refused = client
        .read_resource(ReadResourceRequestParams::new("test://nothing"))
        .await;
    checks.check(
        "an unknown resource is an error",
        matches!(code(&refused), Some(-32602 | -32002)),
        refused,
    );

    let values = client
        .complete_prompt_simple("test_prompt_with_arguments", "arg1", "par")
        .await?;
    checks.check(
        "completes an argument of a prompt",
        values == ["paris", "park", "party"],
        &values,
    );
    let values = client
        .complete_resource_simple(TEMPLATE, "id", "12")
        .await?;
    checks.check(
        "completes a variable of a template",
        values == ["123", "124"],
        &values,
    );
    Ok(())
}

/// Subscribes to a resource, as the revision has it, and waits for an update.
async fn update(at: &mut Conversation, revision: &str, checks: &mut Checks) -> Result<()> {
    let uri = if revision >= "2026-07-28" {
        let filter = SubscriptionFilter::builder()
            .resource_subscriptions(vec![WATCHED.to_owned()])
            .build();
        let mut news = at.client.listen(filter).await?;
        at.call("test_trigger_resource_update", json!({})).await?;
        let Some(ServerNotification::ResourceUpdatedNotification(update)) = news.next().await?
        else {
            anyhow::bail!("the server says something else");
        };
        news.cancel().await?;
        update.params.uri
    } else {
        at.client
            .subscribe(SubscribeRequestParams::new(WATCHED))
            .await?;
        at.call("test_trigger_resource_update", json!({})).await?;
        at.updated.recv().await.context("the server says no more")?
    };
    checks.check("is told that a resource has changed", uri == WATCHED, &uri);
    Ok(())
}

async fn model_and_roots(at: &Conversation, checks: &mut Checks) -> Result<()> {
    let found = call(
        at,
        "test_sampling",
        json!({"prompt": "The capital of France?"}),
    )
    .await?;
    checks.check(
        "the model is asked",
        found == ["LLM response: Paris.", "The capital of France? (100)"],
        &found,
    );
    let found = call(at, "test_input_required_result_list_roots", json!({})).await?;
    checks.check(
        "the folders are asked for",
        found == ["Roots: file:///home/ada", "roots"],
        &found,
    );
    Ok(())
}

async fn forms(at: &Conversation, checks: &mut Checks) -> Result<()> {
    let person = &at.client.service().person;
    let content = r#"content={"username":"my username","email":"my email"}"#;
    for (action, said) in [
        (ElicitationAction::Decline, "action=decline".to_owned()),
        (ElicitationAction::Cancel, "action=cancel".to_owned()),
        (
            ElicitationAction::Accept,
            format!("action=accept, {content}"),
        ),
    ] {
        person.will(action);
        let found = call(at, "test_elicitation", json!({"message": "Who?"})).await?;
        let expected = [format!("User response: {said}"), "Who?".to_owned()];
        checks.check(&format!("a form: {said}"), found == expected, &found);
    }
    let mut found = call(at, "test_input_required_result_multiple_inputs", json!({})).await?;
    let whole = found.remove(0);
    found.sort();
    let together = ["Generate a greeting (50)", "What is your name?", "roots"];
    checks.check(
        "several things are asked at once",
        found == together,
        &found,
    );
    let expected = r#"Paris. action=accept, content={"name":"my name"} 1 roots"#;
    checks.check("and all are answered", whole == expected, &whole);
    let found = call(at, "test_input_required_result_multi_round", json!({})).await?;
    let steps = [
        "Step 1: What is your name?",
        "Step 2: What is your favorite color?",
    ];
    checks.check(
        "one thing is asked after the other",
        found[1..] == steps,
        &found,
    );
    let got = json!(
        at.client
            .get_prompt(GetPromptRequestParams::new(
                "test_input_required_result_prompt"
            ))
            .await?
    );
    let used = got["messages"][0]["content"]["text"] == "Use this context: my context";
    checks.check("a prompt asks, too", used, &got);
    let item = read(at, "test://greeting/Hello").await?;
    checks.check(
        "and so does a resource",
        item["text"] == "Hello, my name!",
        &item,
    );
    Ok(())
}

async fn page(at: &Conversation, checks: &mut Checks) -> Result<()> {
    let person = &at.client.service().person;
    for (action, said) in [
        (ElicitationAction::Cancel, "action=cancel"),
        (ElicitationAction::Accept, "action=accept, content=null"),
    ] {
        person.will(action);
        person.asked();
        let found = call(at, "test_elicitation_url", json!({})).await?;
        let expected = [
            &format!("Elicitation completed: {said}"),
            "https://example.com/sign-in",
        ];
        checks.check(&format!("a page: {said}"), found == expected, &found);
    }
    Ok(())
}

/// Calls a tool; what it says, and what was asked for it.
async fn call(at: &Conversation, name: &'static str, arguments: Value) -> Result<Vec<String>> {
    let person = &at.client.service().person;
    person.asked();
    let result = at.call(name, arguments).await?;
    let mut found = vec![text(&result).to_owned()];
    found.extend(person.asked());
    Ok(found)
}

/// The first item of a resource.
async fn read(at: &Conversation, uri: &str) -> Result<Value> {
    let result = at
        .client
        .read_resource(ReadResourceRequestParams::new(uri))
        .await?;
    Ok(json!(result.contents.first()))
}

/// The code of the error that something ended with.
fn code<T>(result: &Result<T, ServiceError>) -> Option<i32> {
    match result {
        Err(ServiceError::McpError(error)) => Some(error.code.0),
        _ => None,
    }
}
