//! Calls each declared webhook once, with a request that asks for nothing, and sees that it answers.

use reqwest::Method;
use serde_json::json;

use super::{
    CheckError,
    api::Answer,
    report::{Finding, Topic},
    session::{Session, millis, span},
};
use crate::domain::manifest::Webhook;

const IN_TIME: &str = "answer every request before its deadline, also one without a body or a signature";
const ANSWER: &str =
    "a webhook must answer every request with a status of 200 to 599: catch errors, and answer 4xx or 5xx";
const SERVER_ERROR: &str = "a request that asks for nothing is the caller's mistake: answer 4xx";

/// Tries every webhook.
pub async fn check(session: &mut Session<'_>) -> Result<(), CheckError> {
    let manifest = session.manifest;
    if manifest.webhooks.is_empty() {
        session.add(Finding::skipped(Topic::Webhooks, "it declares none"));
    }
    for (n, webhook) in manifest.webhooks.iter().enumerate() {
        session.output.progress(&format!("webhook {} of {}", n + 1, manifest.webhooks.len()));
        let finding = if webhook.key.is_empty() {
            Finding::skipped(Topic::Webhooks, "no address leads to an empty key")
        } else if session.runs().await? {
            call(session, webhook).await?
        } else {
            let why = format!("the plugin does not run: {}", session.last_error().await?);
            Finding::skipped(Topic::Webhooks, why)
        };
        session.add(finding.of(&webhook.key));
    }
    Ok(())
}

async fn call(session: &Session<'_>, webhook: &Webhook) -> Result<Finding, CheckError> {
    let path = ["api", "plugins", session.id(), "webhooks", webhook.key.as_str()];
    let request = match webhook.method.eq_ignore_ascii_case("post") {
        true => session.api.request(Method::POST, &path).json(&json!({})),
        false => session.api.request(Method::GET, &path),
    };
    let answer = session.api.send(request, session.timing.answer).await?;
    if matches!(answer.status, 502 | 503) && answer.refusal().is_some() {
        session.settle().await?;
    }
    Ok(judge(&answer))
}

/// The host's own refusals are the plugin's failures; every other answer is the plugin's.
fn judge(answer: &Answer) -> Finding {
    let took = span(answer.took);
    let refusal = answer.refusal();
    let finding = match (answer.status, refusal.as_ref().map(|(code, text)| (code.as_str(), text))) {
        (504, Some(("webhook_timeout", _))) => {
            Finding::fail(Topic::Webhooks, format!("it did not answer within {took}"), IN_TIME)
        }
        (502 | 503, Some((code @ ("webhook_failed" | "invalid_webhook_answer" | "plugin_not_running"), text))) => {
            Finding::fail(Topic::Webhooks, format!("it gave no answer that can be sent on ({code}): {text}"), ANSWER)
        }
        (status @ (404 | 405), _) => {
            Finding::pass(Topic::Webhooks, format!("it answers {status} to a request that asks for nothing, in {took}"))
        }
        (status @ 500..=599, _) => {
            Finding::warn(Topic::Webhooks, format!("it answers {status}, in {took}"), SERVER_ERROR)
        }
        (status, _) => Finding::pass(Topic::Webhooks, format!("it answers {status}, in {took}")),
    };
    finding.fact("status", answer.status).fact("ms", millis(answer.took))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn verdict(status: u16, body: &str) -> String {
        let answer = Answer { status, kind: String::new(), body: body.into(), took: Duration::from_millis(7) };
        let finding = serde_json::to_value(judge(&answer)).unwrap();
        format!("{}: {}", finding["verdict"].as_str().unwrap(), finding["text"].as_str().unwrap())
    }

    #[test]
    fn the_hosts_refusals_are_failures_and_the_plugins_answers_are_not() {
        assert_eq!(verdict(200, "ok"), "pass: it answers 200, in 7 ms");
        assert_eq!(verdict(401, r#"{"error":"no","code":"unauthenticated"}"#), "pass: it answers 401, in 7 ms");
        assert_eq!(verdict(404, ""), "pass: it answers 404 to a request that asks for nothing, in 7 ms");
        assert_eq!(verdict(503, r#"{"error":"later"}"#), "warn: it answers 503, in 7 ms");
        assert_eq!(verdict(504, r#"{"error":"x","code":"webhook_timeout"}"#), "fail: it did not answer within 7 ms");
        let text = "fail: it gave no answer that can be sent on (webhook_failed): x";
        assert_eq!(verdict(503, r#"{"error":"x","code":"webhook_failed"}"#), text);
    }
}
