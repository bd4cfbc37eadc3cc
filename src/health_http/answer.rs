//! What a request gets.

use std::time::Duration;

use hyper::header::{ALLOW, CONTENT_TYPE, HeaderValue};
use hyper::{Method, Response, StatusCode};

use crate::domain::time::BootTime;
use crate::domain::vitals::Vitals;

/// Vitals are taken every few seconds; older ones mean that nobody takes them any more.
const VITALS_MAX_AGE: Duration = Duration::from_secs(60);

/// Answers one request.
pub(super) fn answer(
    method: &Method,
    path: &str,
    vitals: &Vitals,
    now: BootTime,
) -> Response<String> {
    let reasons = match path {
        "/" | "/healthz" => stuck(vitals, now),
        "/readyz" => [stuck(vitals, now), vitals.shortcomings.clone()].concat(),
        _ => return text(StatusCode::NOT_FOUND, "not found\n".to_owned()),
    };
    if *method != Method::GET {
        let mut refused = text(StatusCode::METHOD_NOT_ALLOWED, "GET only\n".to_owned());
        let allowed = HeaderValue::from_static("GET");
        refused.headers_mut().insert(ALLOW, allowed);
        return refused;
    }
    if reasons.is_empty() {
        return text(StatusCode::OK, "ok".to_owned());
    }
    let lines: Vec<String> = reasons
        .iter()
        .map(|reason| reason.replace(['\n', '\r'], " ") + "\n")
        .collect();
    text(StatusCode::SERVICE_UNAVAILABLE, lines.concat())
}

fn stuck(vitals: &Vitals, now: BootTime) -> Vec<String> {
    let age = now.since(vitals.at);
    let mut reasons = vitals.stuck.clone();
    if age > VITALS_MAX_AGE {
        reasons.push(format!(
            "the agent took no look at itself for {} s",
            age.as_secs()
        ));
    }
    reasons
}

fn text(status: StatusCode, body: String) -> Response<String> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    let plain = HeaderValue::from_static("text/plain; charset=utf-8");
    response.headers_mut().insert(CONTENT_TYPE, plain);
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vitals(stuck: &[&str], shortcomings: &[&str]) -> Vitals {
        let owned = |lines: &[&str]| lines.iter().map(|line| (*line).to_owned()).collect();
        Vitals {
            at: BootTime(0),
            stuck: owned(stuck),
            shortcomings: owned(shortcomings),
        }
    }

    fn get(path: &str, vitals: &Vitals, now: BootTime) -> (u16, String) {
        let response = answer(&Method::GET, path, vitals, now);
        (response.status().as_u16(), response.into_body())
    }

    #[test]
    fn a_healthy_agent_is_ok_on_every_path_and_others_do_not_exist() {
        let well = vitals(&[], &[]);
        for path in ["/", "/healthz", "/readyz"] {
            assert_eq!(get(path, &well, BootTime(0)), (200, "ok".to_owned()));
        }
        for path in ["/metrics", "//", "/healthz/"] {
            assert_eq!(get(path, &well, BootTime(0)).0, 404, "{path}");
        }
    }

    #[test]
    fn other_methods_are_refused_with_the_one_that_is_allowed() {
        for method in [Method::POST, Method::HEAD, Method::DELETE] {
            let refused = answer(&method, "/", &vitals(&[], &[]), BootTime(0));
            assert_eq!(refused.status(), StatusCode::METHOD_NOT_ALLOWED);
            assert_eq!(refused.headers()[ALLOW], "GET");
        }
    }

    #[test]
    fn what_a_restart_cannot_mend_is_a_matter_of_readiness_only() {
        let poor = vitals(&[], &["disk full", "two\nlines"]);
        assert_eq!(get("/healthz", &poor, BootTime(0)).0, 200);
        assert_eq!(
            get("/readyz", &poor, BootTime(0)),
            (503, "disk full\ntwo lines\n".to_owned())
        );
        let stuck = vitals(&["stuck"], &["poor"]);
        assert_eq!(get("/", &stuck, BootTime(0)), (503, "stuck\n".to_owned()));
        assert_eq!(get("/readyz", &stuck, BootTime(0)).1, "stuck\npoor\n");
    }

    #[test]
    fn old_vitals_are_a_bad_sign() {
        let well = vitals(&[], &[]);
        let late = BootTime(0).plus(VITALS_MAX_AGE);
        assert_eq!(get("/healthz", &well, late).0, 200);
        let (status, said) = get("/healthz", &well, late.plus(Duration::from_secs(1)));
        assert_eq!((status, said.contains("for 61 s")), (503, true), "{said}");
    }
}
