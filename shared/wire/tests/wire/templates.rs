//! Objects in a List or a Template: read as if they stood alone, parameters filled in, and what is not for Keelway named.

use keelway_domain::deployments::definition::Definition;
use keelway_wire::manifest::{self, Document, Parameters, Parsed, Severity};
use serde_json::json;

fn given(pairs: &[(&str, &str)]) -> Parameters {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

fn parse(text: &str, pairs: &[(&str, &str)]) -> Parsed {
    manifest::parse_with(text, "objects.yaml", &given(pairs))
}

fn errors(parsed: &Parsed) -> Vec<String> {
    let errors = parsed.findings.iter().filter(|finding| finding.severity == Severity::Error);
    errors.map(|finding| format!("{} {}: {}", finding.line, finding.path, finding.message)).collect()
}

fn definition(parsed: &Parsed) -> Definition {
    assert_eq!(errors(parsed), [""; 0]);
    let config = parsed.documents.iter().find_map(|document| match document {
        Document::DeploymentConfig(config) => config.definition.clone(),
        _ => None,
    });
    config.unwrap()
}

const CONFIG: &str = "{apiVersion: v1, kind: DeploymentConfig, metadata: {name: web}, spec: {template: {metadata: {labels: {app: web}}, spec: {containers: [{name: web, image: w}]}}}}";

#[test]
fn a_list_holds_objects_of_any_kind() {
    let text = format!(
        "kind: List
apiVersion: v1
metadata: {{resourceVersion: ''}}
items:
- {{apiVersion: v1, kind: Service, metadata: {{name: web}}}}
- {CONFIG}
- {{apiVersion: image.openshift.io/v1, kind: ImageStream, metadata: {{name: web}}}}
- {{apiVersion: keelway.dev/v1, kind: ArtifactSource, metadata: {{name: web}}, spec: {{webhook: {{secret: key}}}}}}
- {{apiVersion: v1, kind: List, items: [{}]}}
",
        CONFIG.replace("metadata: {name: web}", "metadata: {name: inner}")
    );
    let parsed = parse(&text, &[]);
    let named: Vec<String> = parsed.documents.iter().map(Document::named).collect();
    assert_eq!(named, ["deployment config default/web", "artifact source default/web", "deployment config default/inner"]);
    let told: Vec<String> = parsed.findings.iter().map(ToString::to_string).collect();
    insta::assert_snapshot!(told.join("\n"), @r"
    warning: objects.yaml:5:26: items[0]: Service web is not applied, as Keelway only deploys: apply it with the tool that manages it
      5 | - {apiVersion: v1, kind: Service, metadata: {name: web}}
        |                          ^
    warning: objects.yaml:7:45: items[2]: ImageStream web is not applied, as Keelway only deploys: declare with `kind: ArtifactSource` where its images come from
      7 | - {apiVersion: image.openshift.io/v1, kind: ImageStream, metadata: {name: web}}
        |                                             ^
    ");
    // Each is kept as a document of its own.
    for document in &parsed.documents {
        let Document::DeploymentConfig(config) = document else { continue };
        let alone = parse(&config.source, &[]);
        let [Document::DeploymentConfig(same)] = &alone.documents[..] else { panic!("{alone:?}") };
        assert_eq!((&same.name, &same.definition), (&config.name, &config.definition));
    }
}

#[test]
fn what_is_wrong_with_an_object_is_told_with_its_place() {
    let text = "\
kind: List
apiVersion: v2
itms: []
items:
- {apiVersion: v1, kind: DeploymentConfg}
- {apiVersion: v1, kind: DeploymentConfig, metadata: {name: web}, spec: {replicas: -1, template: {}}}
- {apiVersion: v1}
- web
- {kind: List, apiVersion: v1, items: {}}
";
    insta::assert_snapshot!(errors(&parse(text, &[])).join("\n"), @r#"
    2 apiVersion: "v2" is not a version of List: write `apiVersion: v1`
    3 itms: is not a field of a List: write `items`
    5 items[0].kind: "DeploymentConfg" is not a kind: write `DeploymentConfig`
    6 items[1].spec.replicas: "-1" is not a whole number of at least 0: write one
    7 items[2].kind: is missing: write which kind of object this is
    8 items[3]: is a text, not an object: write a mapping with `apiVersion:` and `kind:`
    9 items[4].items: is a mapping, not a list: list the objects, like `- kind: DeploymentConfig`
    "#);
    assert_eq!(parse(text, &[]).documents, []);
    // Without its kind, a document is read as what it looks like.
    assert_eq!(
        errors(&parse(&format!("apiVersion: v1\nitems:\n- {}\n", CONFIG.replace("name: web}, spec", "name: Web}, spec")), &[]))
            .len(),
        2
    );
    assert!(errors(&parse("apiVersion: v1\nobjects: []\n", &[]))[0].contains("write `kind: Template`"));
    assert!(
        errors(&parse(&CONFIG.replace(" kind: DeploymentConfig,", "").replace(": v1", ": apps.openshift.io/v1"), &[]))[0]
            .contains("write `kind: DeploymentConfig`")
    );
}

#[test]
fn a_list_without_anything_for_keelway_is_refused() {
    for items in ["[]", "[{apiVersion: v1, kind: Service, metadata: {name: web}}]", "[{apiVersion: v1, kind: List, items: []}]"] {
        let parsed = parse(&format!("{{apiVersion: v1, kind: List, items: {items}}}"), &[]);
        assert!(errors(&parsed).len() == 1 && errors(&parsed)[0].contains("holds nothing for Keelway"), "{:?}", parsed.findings);
    }
}

const TEMPLATE: &str = "\
apiVersion: template.openshift.io/v1
kind: Template
metadata: {name: web}
labels: {app: '${NAME}', part: all}
parameters:
- {name: NAME, displayName: Name, description: What it is called, value: web, required: true}
- {name: TAG, required: true}
- {name: REPLICAS, value: '2'}
- {name: SURGE, value: '1'}
- {name: EMPTY}
- {name: PASSWORD, generate: expression, from: '[a-z]{8}'}
- {name: HOOK_KEY, generate: expression, from: '[a-z]{8}'}
objects:
- {apiVersion: v1, kind: Secret, metadata: {name: '${NAME}-${TAG}'}, data: {key: '${HOOK_KEY}'}}
- apiVersion: apps.openshift.io/v1
  kind: DeploymentConfig
  metadata: {name: '${NAME}', labels: {app: other, own: 'yes'}}
  spec:
    replicas: ${{REPLICAS}}
    strategy: {rollingParams: {maxSurge: '${SURGE}'}}
    template:
      metadata: {labels: {'${NAME}-label': 'x${EMPTY}y'}}
      spec:
        containers:
        - name: ${NAME}
          image: registry/${NAME}:${TAG}
          command: [sh, -c, 'echo ${HOME} ${NAME} ${ ${{NAME}} $NAME ${NAME']
          env: [{name: PASSWORD, value: '${PASSWORD}'}, {name: RAW, value: '${{REPLICAS}}'}, {name: FLAG, value: '${{TAG}}'}]
";

#[test]
fn a_template_is_filled_in_with_its_values_and_those_given() {
    let parsed = parse(TEMPLATE, &[("TAG", "true"), ("PASSWORD", "s3cret"), ("REPLICAS", "3")]);
    let [filled] = &parsed.sources[..] else { panic!("{:?}", parsed.sources) };
    let definition = definition(&parsed);
    assert_eq!((parsed.has_template, self::definition(&parse(filled, &[]))), (true, definition.clone()), "{filled}");
    let mixed = parse(&format!("# one\n{CONFIG}\n---\nkind: List\napiVersion: v1\nitems: [{CONFIG}]\n"), &[]);
    assert_eq!(
        (mixed.has_template, mixed.sources.len(), mixed.sources[0].contains("# one")),
        (false, 2, true),
        "{:?}",
        mixed.sources
    );
    let labels = [("app", "web"), ("own", "yes"), ("part", "all")].map(|(name, value)| (name.to_owned(), value.to_owned()));
    assert_eq!(definition.labels, labels.into());
    assert_eq!((definition.replicas, &definition.strategy.params["maxSurge"]), (Some(3), &json!(1)));
    assert_eq!(definition.template["metadata"], json!({"labels": {"web-label": "xy"}}));
    let container = &definition.template["spec"]["containers"][0];
    assert_eq!((&container["name"], &container["image"]), (&json!("web"), &json!("registry/web:true")));
    // What is no parameter, or stands in a text as `${{…}}`, stays.
    assert_eq!(container["command"][2], "echo ${HOME} web ${ ${{NAME}} $NAME ${NAME");
    let values: Vec<_> = container["env"].as_array().unwrap().iter().map(|variable| variable["value"].clone()).collect();
    assert_eq!(values, [json!("s3cret"), json!(3), json!(true)]);
    let told: Vec<String> = parsed.findings.iter().map(|finding| finding.message.clone()).collect();
    assert_eq!(told, ["Secret web-true is not applied, as Keelway only deploys: apply it with the tool that manages it"]);
    let [Document::DeploymentConfig(config)] = &parsed.documents[..] else { panic!("{parsed:?}") };
    let alone = parse_alone(&config.source);
    assert_eq!((config.name.as_str(), Some(&alone)), ("web", config.definition.as_ref()), "{}", config.source);
}

fn parse_alone(text: &str) -> Definition {
    definition(&parse(text, &[]))
}

#[test]
fn values_that_are_missing_are_told_once_and_what_else_is_wrong_too() {
    let text = TEMPLATE.replace("maxSurge", "maxSurg");
    insta::assert_snapshot!(errors(&parse(&text, &[])).join("\n"), @r"
    7 parameters[1]: is required and has no value: give it one with `--param TAG=…`
    11 parameters[5]: would be generated, and each time it is applied, another value would be deployed: give it one with `--param PASSWORD=…`, or write `value`
    20 objects[1].spec.strategy.rollingParams.maxSurg: is not a field of `rollingParams`: write `maxSurge`
    ");
    // A generated value that nothing uses is not asked for, one that is given is taken, and so is an empty one that nobody
    // requires.
    let parsed = parse(&TEMPLATE.replace("'${PASSWORD}'", "x"), &[("TAG", "1")]);
    assert_eq!(errors(&parsed), [""; 0]);
    let both = [("TAG", "1"), ("PASSWORD", "x"), ("PASWORD", "y")];
    let unknown = errors(&parse(TEMPLATE, &both));
    assert!(
        unknown.len() == 1 && unknown[0].contains("the parameter \"PASWORD\" is given") && unknown[0].contains("`PASSWORD`"),
        "{unknown:?}"
    );
    assert_eq!(errors(&parse(CONFIG, &[("TAG", "1")])), [""; 0], "without a template, nothing is declared");
}

#[test]
fn the_last_of_two_equal_parameters_counts() {
    let text = TEMPLATE.replace("- {name: EMPTY}", "- {name: NAME, value: shop}\n- {name: EMPTY}");
    let parsed = parse(&text, &[("TAG", "1"), ("PASSWORD", "x")]);
    assert_eq!(parsed.documents[0].named(), "deployment config default/shop");
    assert!(
        parsed.findings.iter().any(|finding| finding.path == "parameters[4].name" && finding.message.contains("is there twice"))
    );
}

#[test]
fn what_is_wrong_with_a_template_is_told() {
    for (from, to, path, words) in [
        ("template.openshift.io/v1", "template.openshift.io/v2", "apiVersion", "write `apiVersion: template.openshift.io/v1`"),
        ("objects:", "items:", "items", "write `objects`"),
        ("- {name: EMPTY}", "- {name: A-B}", "parameters[4].name", "is not the name of a parameter"),
        ("- {name: EMPTY}", "- {nmae: EMPTY}", "parameters[4].nmae", "write `name`"),
        ("- {name: EMPTY}", "- {name: EMPTY, required: maybe}", "parameters[4].required", "write `true` or `false`"),
        ("labels: {app", "labels: {x: [], app", "labels.x", "not a text"),
        ("replicas: ${{REPLICAS}}", "replicas: ${{NAME}}", "objects[1].spec.replicas", "\"web\" is not a whole number"),
    ] {
        assert!(TEMPLATE.contains(from), "{from}");
        let parsed = parse(&TEMPLATE.replacen(from, to, 1), &[("TAG", "1"), ("PASSWORD", "x")]);
        let hit = parsed.findings.iter().find(|finding| finding.path == path && finding.severity == Severity::Error);
        assert!(hit.is_some_and(|finding| finding.message.contains(words)), "{from} → {to}: {:#?}", parsed.findings);
    }
    let old = TEMPLATE.replace("template.openshift.io/v1", "v1").replacen("labels: {app", "message: hello\nlabels: {app", 1);
    let parsed = parse(&old, &[("TAG", "1"), ("PASSWORD", "x")]);
    assert_eq!(errors(&parsed), [""; 0]);
    assert!(parsed.findings.iter().any(|finding| finding.path == "message"));
}

#[test]
fn a_template_cannot_grow_without_end() {
    let long = "x".repeat(100_000);
    let uses = "${LONG}".repeat(50);
    let text = TEMPLATE.replace("- {name: EMPTY}", "- {name: LONG}").replace("${EMPTY}", &uses);
    let grown = errors(&parse(&text, &[("TAG", "1"), ("PASSWORD", "x"), ("LONG", &long)]));
    assert!(grown.len() == 1 && grown[0].contains("shorten their values"), "{grown:?}");
}

#[test]
fn texts_that_look_like_something_else_survive_a_list() {
    let odd = vec![
        "yes",
        "true",
        "~",
        "null",
        "0x1f",
        "1e3",
        "007",
        " a",
        "a ",
        "a: b",
        "- a",
        "#a",
        "a\nb\n",
        "\n",
        "",
        "é☃",
        "'",
        "\"",
        "a\tb",
        "1_000",
        "0o7",
        ".5",
        "[",
        "{a}",
        "!x",
        "&x",
        "*x",
        "%x",
        "@x",
        "`x",
        "2026-11-22",
        "a\\b",
        "<<",
        "\u{85}\u{2028}",
    ];
    let config = json!({
        "apiVersion": "v1", "kind": "DeploymentConfig", "metadata": {"name": "web"},
        "spec": {"template": {"containers": [{"name": "web", "image": "w", "args": odd, "n": [1, -2, 0.5, true, null, [], {}, 18_446_744_073_709_551_615_u64]}]}},
    });
    let parsed = parse(&json!({"kind": "List", "apiVersion": "v1", "items": [config]}).to_string(), &[]);
    let [Document::DeploymentConfig(config)] = &parsed.documents[..] else { panic!("{parsed:?}") };
    assert_eq!(Some(parse_alone(&config.source)), config.definition, "{}", config.source);
    assert_eq!(config.definition.as_ref().unwrap().template["containers"][0]["args"], json!(odd));
}
