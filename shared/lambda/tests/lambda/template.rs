//! The template and the functions agree: with what a parameter of `infra/template.yaml` takes, the functions start.

use keelway_lambda::config::Config;
use proptest::prelude::*;
use proptest::strategy::Union;
use proptest::string::string_regex;
use proptest::test_runner::{Config as Cases, RngAlgorithm, TestRunner};
use regex::Regex;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::Command;

pub(crate) fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// As plain data; of `!Ref Table` the `Table` stays.
pub(crate) fn template() -> Value {
    let text = std::fs::read_to_string(repository().join("infra/template.yaml")).unwrap();
    serde_saphyr::from_str(&text).unwrap()
}

/// Name and value of every member.
pub(crate) fn members(value: &Value) -> impl Iterator<Item = (&str, &Value)> {
    value.as_object().into_iter().flatten().map(|(name, value)| (name.as_str(), value))
}

/// Environment variables whose value is a parameter, and the parameter's name.
fn variables(template: &Value) -> Vec<(String, String)> {
    let functions = members(&template["Resources"]).map(|(_, resource)| &resource["Properties"]);
    let all =
        functions.chain([&template["Globals"]["Function"]]).flat_map(|function| members(&function["Environment"]["Variables"]));
    let of_parameters = all.filter_map(|(variable, value)| Some((variable.to_owned(), value.as_str()?.to_owned())));
    of_parameters.filter(|(_, parameter)| template["Parameters"].get(parameter).is_some()).collect()
}

/// The regular expression a parameter has to match, without the anchors: it always has to match as a whole.
fn pattern(parameter: &Value) -> Option<&str> {
    let pattern = parameter["AllowedPattern"].as_str()?;
    Some(pattern.strip_prefix('^').and_then(|rest| rest.strip_suffix('$')).expect("a pattern between ^ and $"))
}

/// Whether CloudFormation takes the value for the parameter.
fn takes(parameter: &Value, value: &str) -> bool {
    let listed = parameter["AllowedValues"].as_array().is_none_or(|values| values.iter().any(|allowed| text(allowed) == value));
    let matches = pattern(parameter).is_none_or(|pattern| Regex::new(&format!(r"\A(?:{pattern})\z")).unwrap().is_match(value));
    let in_range = parameter["Type"] != "Number" || value.parse().is_ok_and(|number| bounds(parameter).contains(&number));
    listed && matches && in_range
}

fn bounds(parameter: &Value) -> std::ops::RangeInclusive<f64> {
    parameter["MinValue"].as_f64().unwrap_or(f64::MIN)..=parameter["MaxValue"].as_f64().unwrap_or(f64::MAX)
}

fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Whether the functions start with this value of a variable.
fn starts(variable: &str, value: &str) -> bool {
    // Rules mean something only with an issuer.
    let issuer =
        |name: &str| (variable == "KEELWAY_OIDC_GRANTS" && name == "KEELWAY_OIDC_ISSUERS").then_some("https://issuer.test");
    let read = |name: &str| Some(if name == variable { value.to_owned() } else { issuer(name).or(required(name))?.to_owned() });
    Config::read(read).is_ok()
}

fn required(name: &str) -> Option<&str> {
    let names = ["TABLE", "BUS", "SCHEDULER_GROUP", "SCHEDULER_ROLE_ARN"];
    let queue = |rest: &str| rest.ends_with("_QUEUE_URL") || rest.ends_with("_QUEUE_ARN");
    name.strip_prefix("KEELWAY_").filter(|rest| names.contains(rest) || queue(rest))
}

/// Values that the parameter takes, made after its constraints.
fn values(parameter: &Value) -> BoxedStrategy<String> {
    if let Some(allowed) = parameter["AllowedValues"].as_array() {
        return proptest::sample::select(allowed.iter().map(text).collect::<Vec<_>>()).boxed();
    }
    if let Some(pattern) = pattern(parameter) {
        return string_regex(pattern).unwrap().boxed();
    }
    assert_eq!(parameter["Type"], "Number", "a parameter without any constraint: {parameter}");
    let ends = [*bounds(parameter).start(), *bounds(parameter).end()];
    let numbers = Union::new([bounds(parameter).boxed(), bounds(parameter).prop_map(f64::trunc).boxed()]);
    let numbers = Union::new([numbers.boxed(), proptest::sample::select(ends.to_vec()).boxed()]);
    (numbers, any::<bool>()).prop_map(|(number, short)| if short { format!("{number:e}") } else { number.to_string() }).boxed()
}

#[test]
fn what_the_template_takes_the_functions_start_with() {
    let template = template();
    let mut seen = vec![];
    for (variable, name) in variables(&template) {
        let parameter = &template["Parameters"][&name];
        let check = |value: String| {
            prop_assert!(starts(&variable, &value), "{name} takes {value:?}, and no function starts with it");
            Ok(())
        };
        // Each strategy has random numbers of its own, and the default kind computes a kilobyte of them for the first one.
        let cases = Cases { cases: 1000, failure_persistence: None, rng_algorithm: RngAlgorithm::XorShift, ..Cases::default() };
        let result = TestRunner::new(cases).run(&values(parameter), check);
        assert!(result.is_ok(), "{}", result.unwrap_err());
        if !parameter["Default"].is_null() {
            let default = text(&parameter["Default"]);
            assert!(takes(parameter, &default) && starts(&variable, &default), "the default of {name} is {default:?}");
        }
        seen.push(name);
    }
    seen.sort();
    let expected = [
        "AddressRequests",
        // Of clusters, git hosts, identity providers, sources of metrics (evaluations, canaries), and of webhooks.
        "AllowedHosts",
        "AllowedHosts",
        "AllowedHosts",
        "AllowedHosts",
        "AllowedHosts",
        "AllowedHosts",
        "ApiTokenSha256",
        "LogLevel",
        "MaxEventBytes",
        "MaxExecutions",
        // Of the sweep.
        "MaxMessageAgeSeconds",
        "MaxReceives",
        "Metrics",
        "OidcAudience",
        "OidcGrants",
        "OidcIssuers",
        "PageSignIn",
        "Polling",
        "RetentionDays",
        "StartDeadline",
        "TaskTimeout",
        "TokenRequests",
        // Of webhooks, and of notifications of promotions.
        "WebhookAllowedHosts",
        "WebhookAllowedHosts",
        "Webhooks",
    ];
    assert_eq!(seen, expected, "the parameters that the functions read");
}

/// A stack on AWS has no servers on its own machine that anybody should reach.
#[test]
fn no_stack_lets_requests_reach_its_own_machine() {
    assert!(
        Config::read(|name| if name == "KEELWAY_LOOPBACK" { Some("true".into()) } else { required(name).map(Into::into) })
            .unwrap()
            .loopback
    );
    assert!(!Config::read(|name| required(name).map(Into::into)).unwrap().loopback);
    assert!(!template().to_string().contains("LOOPBACK"));
}

const DURATIONS: [(&str, &str); 2] = [("KEELWAY_START_DEADLINE", "StartDeadline"), ("KEELWAY_TASK_TIMEOUT", "TaskTimeout")];

#[test]
fn usual_durations_are_taken_by_both() {
    let template = template();
    let usual = ["1s", "90s", "10m", "24h", "1h30m", "1d12h", "2h30m15s", "86400s", "1440m", "720h", "7d", "30d", "100d", "365d"];
    // The longest that the pattern lets through, of each unit.
    let longest = ["9999999s9999999s9999999s", "99999m99999m99999m", "999h999h999h", "99d99d99d", "299d", "359d"];
    for (variable, name) in DURATIONS {
        for given in usual.iter().chain(&longest) {
            assert!(takes(&template["Parameters"][name], given), "{name} does not take {given:?}");
            assert!(starts(variable, given), "no function starts with {variable}={given:?}");
        }
    }
    assert!(takes(&template["Parameters"]["TaskTimeout"], "0") && starts("KEELWAY_TASK_TIMEOUT", "0"));
}

#[test]
fn other_durations_are_refused_at_deployment() {
    let template = template();
    let wrong = [
        "",
        "soon",
        "10",
        "m",
        "00",
        "0s",
        "0m",
        "0h0m",
        "1h 30m",
        " 10m",
        "10m ",
        "10m\n",
        "5 minutes",
        "1.5h",
        "-5m",
        "+5m",
        "1w",
        "1M",
        "10M",
        "250ms",
        "366d",
        "400d",
        "999d",
        "365d1s",
        "999999h",
        "99999999s",
        "1h30",
        "9d9d9d9d",
    ];
    for (_, name) in DURATIONS {
        for given in wrong {
            assert!(!takes(&template["Parameters"][name], given), "{name} takes {given:?}");
        }
    }
    assert!(!takes(&template["Parameters"]["StartDeadline"], "0") && !starts("KEELWAY_START_DEADLINE", "0"));
}

#[test]
fn the_sweep_has_a_rate_that_eventbridge_takes() {
    let template = template();
    let taken = |given: &str| takes(&template["Parameters"]["SweepRate"], given);
    let rates = ["rate(1 minute)", "rate(5 minutes)", "rate(10 minutes)", "rate(1 hour)", "rate(12 hours)", "cron(0/10 * * * ? *)"];
    let wrong = [
        "rate(1 minutes)",
        "rate(5 minute)",
        "rate(1 hours)",
        "rate(2 hour)",
        "rate(0 minutes)",
        "rate(05 minutes)",
        "5 minutes",
        "",
    ];
    assert_eq!(rates.map(taken), [true; 6]);
    assert_eq!(wrong.map(taken), [false; 8]);
}

/// What a role's statements let it do, with what.
pub(crate) fn allowed<'a>(template: &'a Value, role: &str) -> Vec<(&'a Value, &'a Value)> {
    let policies = &template["Resources"][role]["Properties"]["Policies"];
    let statements = items(policies).flat_map(|policy| items(&policy["PolicyDocument"]["Statement"]));
    statements
        .flat_map(|one| items(&one["Action"]).flat_map(|action| items(&one["Resource"]).map(move |on| (action, on))))
        .collect()
}

/// The members of a list, or what stands for a list of one.
pub(crate) fn items(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().map_or(std::slice::from_ref(value), Vec::as_slice).iter()
}

#[test]
fn lambda_is_told_who_sends_messages_to_itself_by_design() {
    let template = template();
    let functions = members(&template["Resources"]).filter(|(_, resource)| resource["Type"] == "AWS::Serverless::Function");
    for (name, function) in functions {
        let properties = &function["Properties"];
        let role = properties["Role"].as_str().unwrap().trim_end_matches(".Arn");
        let may = allowed(&template, role);
        assert!(!may.is_empty(), "{name} may do nothing");
        let queues: Vec<&Value> = members(&properties["Events"]).map(|(_, event)| &event["Properties"]["Queue"]).collect();
        let to_itself = may.into_iter().any(|(action, on)| action == "sqs:SendMessage" && queues.contains(&on));
        let engines = [
            "SequencesFunction",
            "PromotionsFunction",
            "AttemptsFunction",
            "ObserverFunction",
            "DeploymentsFunction",
            "DeployersFunction",
            "WebhooksFunction",
            "EvaluationsFunction",
        ];
        assert_eq!(to_itself, engines.contains(&name), "{name}");
        let allowed = properties["RecursiveLoop"].as_str();
        assert_eq!(allowed, to_itself.then_some("Allow"), "{name}: Lambda stops a chain of its invocations after about 16");
    }
}

/// Names of resources, and how long AWS lets them be.
const NAMES: [(&str, &str, usize); 4] = [
    ("AWS::Serverless::Function", "FunctionName", 64),
    ("AWS::Scheduler::ScheduleGroup", "Name", 64),
    ("AWS::Events::Rule", "Name", 64),
    ("AWS::SQS::Queue", "QueueName", 80),
];

#[test]
fn a_stack_name_that_makes_other_names_too_long_is_refused_before_anything_is_made() {
    let template = template();
    let rest = |(_, resource): (&str, &Value)| {
        let (_, name, limit) = NAMES.into_iter().find(|(kind, ..)| resource["Type"] == *kind)?;
        let name = resource["Properties"][name].as_str().unwrap();
        Some(limit - name.replace("${AWS::StackName}", "").replace("AWS::StackName", "").len())
    };
    let longest = members(&template["Resources"]).filter_map(rest).min().unwrap();
    let said = |length: usize| {
        let mut deploy = Command::new(repository().join("infra/deploy.sh"));
        deploy.arg("deploy").env_remove("AWS_ENDPOINT_URL").env("SAM", "false").env("ARCH", "arm64");
        // Nothing is packaged there, so a name that is not refused leads no further.
        deploy.env("CARGO_TARGET_DIR", env!("CARGO_TARGET_TMPDIR")).env("KEELWAY_STACK", "k".repeat(length));
        let done = deploy.output().unwrap();
        assert!(!done.status.success());
        String::from_utf8(done.stderr).unwrap()
    };
    assert!(said(longest).contains("nothing is packaged"), "{}", said(longest));
    for wrong in [2, longest + 1] {
        assert!(said(wrong).contains(&format!("{wrong} characters: choose one of 3 to {longest},")), "{}", said(wrong));
    }
}

#[test]
fn usual_rules_for_claims_are_taken_by_both() {
    let parameter = &template()["Parameters"]["OidcGrants"];
    for rules in [
        "",
        "repository=acme/shop,ref=refs/heads/main=>read,trigger@shop",
        "sub=repo:acme/shop:ref:refs/tags/*=>execute:get-action,approve:*@shop,carts;groups=platform=>administer",
        "iss=https://login.acme.test,email=ann@acme.test=>approve:production",
    ] {
        assert!(takes(parameter, rules) && starts("KEELWAY_OIDC_GRANTS", rules), "{rules}");
    }
    for wrong in [
        "repository=acme/shop",
        "=>read",
        "groups=platform=>reads",
        "groups=platform=>read@",
        "groups=a b=>read",
        "groups=a=>execute",
        "email=*@acme.test=>read",
        "repository=acme/*/shop=>read",
    ] {
        assert!(!takes(parameter, wrong) && !starts("KEELWAY_OIDC_GRANTS", wrong), "{wrong}");
    }
}

/// Providers of one's own have ports and paths, and `PARAMETERS` of `make deploy` has a blank between parameters.
#[test]
fn usual_providers_are_taken() {
    let template = template();
    let takes = |name: &str, value: &str| takes(&template["Parameters"][name], value);
    for issuer in [
        "https://accounts.google.com",
        "https://acme.eu.auth0.com/",
        "https://login.acme.test:8443/realms/shop",
        "https://cognito-idp.eu-central-1.amazonaws.com/eu-central-1_Ab1",
        "https://login.microsoftonline.com/11111111-2222-3333-4444-555555555555/v2.0",
    ] {
        assert!(takes("OidcIssuers", issuer) && takes("OidcIssuers", &format!("https://a.test,{issuer}")), "{issuer}");
        assert!(starts("KEELWAY_OIDC_ISSUERS", issuer), "{issuer}");
        for more in ["", ",https://tokens.acme.test:9443", " https://tokens.acme.test,https://more.test", ",scope:groups"] {
            assert!(takes("PageSignIn", &format!("{issuer}{more}")), "{issuer}{more}");
        }
    }
    for wrong in [
        "http://login.acme.test",
        "https://a.test https://b.test/path",
        "https://a.test,*",
        "https://a.test;",
        "https://a.test,scope:",
    ] {
        assert!(!takes("PageSignIn", wrong), "{wrong}");
    }
}

/// Lambda refuses a function that is to be traced and whose role may not send traces.
#[test]
fn every_function_may_send_traces_when_they_are_switched_on() {
    let template = template();
    assert_eq!(template["Globals"]["Function"]["Tracing"], "Tracing", "the parameter");
    for (name, function) in members(&template["Resources"]).filter(|(_, one)| one["Type"] == "AWS::Serverless::Function") {
        let role = function["Properties"]["Role"].as_str().unwrap().trim_end_matches(".Arn");
        let policies = items(&template["Resources"][role]["Properties"]["Policies"]);
        let traced = policies.filter_map(|policy| policy["Fn::If"].as_array()).find(|branches| branches[0] == "Traced");
        let may =
            &traced.unwrap_or_else(|| panic!("{name}: its role has no policy for traces"))[1]["PolicyDocument"]["Statement"][0];
        assert_eq!(may["Action"], json!(["xray:PutTraceSegments", "xray:PutTelemetryRecords"]), "{name}");
    }
}

/// Without a reservation, a flood of requests to the public URL takes the executions of everything else in the account.
#[test]
fn a_reservation_bounds_the_api_unless_somebody_says_none() {
    let template = template();
    let parameter = &template["Parameters"]["ApiReservedConcurrency"];
    assert_eq!(parameter["Default"], "50");
    let reserved = &template["Resources"]["ApiFunction"]["Properties"]["ReservedConcurrentExecutions"];
    assert_eq!(*reserved, json!(["HasApiReservedConcurrency", "ApiReservedConcurrency", "AWS::NoValue"]));
    let none = json!([["ApiReservedConcurrency", "none"]]);
    assert_eq!(template["Conditions"]["HasApiReservedConcurrency"], none, "not equal to the word");
    let taken = |given: &str| takes(parameter, given);
    assert_eq!(["50", "0", "10000", "none"].map(taken), [true; 4]);
    assert_eq!(["", "None", "-1", "5.5", "no"].map(taken), [false; 5]);
}

/// Any namespace may name any repository in an artifact source.
#[test]
fn only_repositories_that_a_parameter_names_are_read() {
    let template = template();
    let mut readers = vec![];
    for (name, resource) in members(&template["Resources"]) {
        let policies = items(&resource["Properties"]["Policies"]).map(|policy| &policy["PolicyDocument"]);
        let statements =
            policies.chain([&resource["Properties"]["PolicyDocument"]]).flat_map(|document| items(&document["Statement"]));
        for statement in statements {
            let of_ecr: Vec<&str> = items(&statement["Action"]).filter_map(|one| one.as_str()?.strip_prefix("ecr:")).collect();
            if !of_ecr.is_empty() {
                assert_eq!(statement["Resource"], "DeployedRepositories", "{name}: {of_ecr:?}");
                assert!(!of_ecr.iter().any(|action| action.starts_with("Set") || action.starts_with("Put")), "{name}: {of_ecr:?}");
                readers.push(name);
            }
        }
    }
    readers.sort_unstable();
    assert_eq!(readers, ["DeployedImagesPolicy", "SourceRepositoriesPolicy"]);
}

/// While such a function works, nobody else sees its messages; when it dies, that would last for all that time.
#[test]
fn functions_whose_queues_hide_messages_for_longer_than_a_minute_hold_them() {
    let template = template();
    let mut holders = vec![];
    for (_, queue) in members(&template["Resources"]).filter(|(_, resource)| resource["Type"] == "AWS::SQS::Queue") {
        let engine = queue["Properties"]["QueueName"].as_str().unwrap().trim_start_matches("${AWS::StackName}-");
        let source = std::fs::read_to_string(repository().join(format!("functions/{engine}/src/main.rs"))).unwrap();
        let holds = source.contains(".holding(");
        assert_eq!(holds, queue["Properties"]["VisibilityTimeout"].as_u64() > Some(60), "{engine}");
        holders.extend(holds.then_some(engine));
    }
    holders.sort_unstable();
    assert_eq!(holders, ["attempts", "deployers", "evaluations", "observer"]);
}

#[test]
fn the_places_of_a_worker_of_webhooks_are_the_messages_it_gets_at_once() {
    let template = template();
    let batch = &template["Resources"]["WebhooksFunction"]["Properties"]["Events"]["Queue"]["Properties"]["BatchSize"];
    assert_eq!(batch.as_u64(), Some(keelway_engine::webhooks::PLACES as u64));
}
