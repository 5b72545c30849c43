//! Opens issues on GitHub. The host adds the token to the requests; the plugin never has it.

use serde::{Deserialize, Serialize};
use std::time::Duration;
use toolbay_plugin::http::{self, Response};
use toolbay_plugin::prelude::*;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct NewIssue {
    /// The repository, as `owner/name`.
    #[schemars(regex(pattern = r"^[A-Za-z0-9-]{1,39}/[A-Za-z0-9._-]{1,100}$"))]
    repository: String,
    /// The title, in one line.
    #[schemars(length(min = 1, max = 256))]
    title: String,
    /// The description, in Markdown.
    #[serde(default)]
    #[schemars(length(max = 65536))]
    body: String,
    /// Labels that the repository has.
    #[serde(default)]
    #[schemars(length(max = 20))]
    labels: Vec<String>,
}

/// The body of the request to GitHub.
#[derive(Serialize)]
struct Sent<'a> {
    title: &'a str,
    body: &'a str,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    labels: &'a [String],
}

#[derive(Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
struct Issue {
    /// Its number in the repository.
    number: u64,
    /// Its page.
    #[serde(alias = "html_url")]
    url: String,
}

/// The error body of GitHub.
#[derive(Default, Deserialize)]
struct Complaint {
    #[serde(default)]
    message: String,
}

/// Creates an issue in a GitHub repository. Everybody who can see the repository can read it.
#[tool(title = "Create a GitHub issue", destructive = false, open_world)]
fn github_create_issue(args: NewIssue, ctx: &Context) -> Result<Json<Issue>> {
    let api = ctx
        .config("api")
        .unwrap_or_else(|| "https://api.github.com".to_owned());
    let url = format!(
        "{}/repos/{}/issues",
        api.trim_end_matches('/'),
        repository(&args.repository)?
    );
    let response = http::post(&url)
        .header("accept", "application/vnd.github+json")
        .header("user-agent", "toolbay-github")
        .header("x-github-api-version", "2022-11-28")
        .timeout(Duration::from_secs(10))
        .send_json(&Sent {
            title: &args.title,
            body: &args.body,
            labels: &args.labels,
        })?;
    if response.status() == 201 {
        return Ok(Json(response.json()?));
    }
    Err(refusal(&args.repository, response))
}

/// Returns the repository, if its name cannot lead to another endpoint of the API.
fn repository(name: &str) -> Result<&str> {
    match name.split_once('/') {
        Some((_, "." | "..")) | None => {
            invalid!("`repository` is owner/name, such as octocat/hello-world, not {name}")
        }
        Some(_) => Ok(name),
    }
}

/// Returns the error message for a response without an issue.
fn refusal(repository: &str, response: Response) -> Error {
    let (status, limited) = (
        response.status(),
        response.header("x-ratelimit-remaining") == Some("0"),
    );
    let said = response
        .json()
        .unwrap_or_else(|_| Complaint::default())
        .message;
    explain(repository, status, limited, &said)
}

fn explain(repository: &str, status: u16, limited: bool, said: &str) -> Error {
    let why = match status {
        401 => "GitHub does not accept the token: the operator must renew it".to_owned(),
        403 | 429 if limited => "GitHub's rate limit is used up: try again later".to_owned(),
        403 => format!("the token may not create issues in {repository}"),
        404 => format!("there is no repository {repository}, or the token has no access to it"),
        410 => format!("{repository} has no issues"),
        422 => return Error::invalid_arguments(format_args!("GitHub refuses the issue: {said}")),
        301 | 307 | 308 => format!("{repository} was renamed: find out its new name"),
        status => format!("GitHub answered with status {status}"),
    };
    Error::msg(if said.is_empty() {
        why
    } else {
        format!("{why} ({said})")
    })
}

export!(github_create_issue);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repository_stays_where_it_is() {
        assert_eq!(
            repository("octocat/hello-world").unwrap(),
            "octocat/hello-world"
        );
        for name in ["octocat", "octocat/..", "octocat/."] {
            assert!(
                repository(name).unwrap_err().is_invalid_arguments(),
                "{name}"
            );
        }
    }

    #[test]
    fn a_refusal_says_what_helps() {
        let said =
            |status, limited, words| explain("a/b", status, limited, words).message().to_owned();
        assert_eq!(
            said(404, false, "Not Found"),
            "there is no repository a/b, or the token has no access to it (Not Found)"
        );
        assert_eq!(
            said(403, true, ""),
            "GitHub's rate limit is used up: try again later"
        );
        assert_eq!(
            said(403, false, ""),
            "the token may not create issues in a/b"
        );
        assert_eq!(said(502, false, ""), "GitHub answered with status 502");
        assert!(explain("a/b", 422, false, "Validation Failed").is_invalid_arguments());
    }

    #[test]
    fn an_issue_is_read_from_what_github_sends() {
        let sent =
            r#"{"number": 7, "html_url": "https://github.com/a/b/issues/7", "state": "open"}"#;
        let issue: Issue = serde_json::from_str(sent).unwrap();
        assert_eq!(
            issue,
            Issue {
                number: 7,
                url: "https://github.com/a/b/issues/7".to_owned()
            }
        );
    }
}
