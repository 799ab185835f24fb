//! Analyses of Argo Rollouts as objectives and indicators.

use keelway_wire::manifest::{self, Finding};

/// `slo.yaml`, `sli.yaml` and the block of a strategy, which the check finds nothing in; and what is said.
fn migrated(text: &str) -> String {
    let converted = manifest::from_analysis(text, "analysis.yaml");
    let files = converted.files.unwrap_or_else(|| panic!("{:?}", converted.findings));
    for (file, text) in [("slo.yaml", &files.slo), ("sli.yaml", &files.sli)] {
        let checked = manifest::check(text, file, None);
        assert!(checked.findings().is_empty(), "{text}\n{:?}", checked.findings());
    }
    let told: Vec<String> = converted.findings.iter().map(Finding::to_string).collect();
    [&files.slo, "---\n", &files.sli, "---\n", &files.analysis, &told.join("\n")].concat()
}

/// What is said of an analysis that is refused.
fn refused(text: &str) -> String {
    let converted = manifest::from_analysis(text, "analysis.yaml");
    assert_eq!(converted.files, None);
    let line = |finding: &Finding| finding.to_string().lines().next().unwrap_or_default().to_owned();
    converted.findings.iter().map(line).collect::<Vec<_>>().join("\n")
}

#[test]
fn an_analysis_of_prometheus() {
    let text = r#"apiVersion: argoproj.io/v1alpha1
kind: AnalysisTemplate
metadata:
  name: checkout-canary
spec:
  args:
    - name: service-name
    - name: port
      value: "8080"
    - name: most-errors
      value: 0.05
  dryRun:
    - metricName: saturation
  metrics:
    - name: error-share
      interval: 5m
      count: 6
      failureLimit: 2
      successCondition: result[0] <= {{args.most-errors}}
      failureCondition: result[0] > 0.1 || isNaN(result[0])
      provider:
        prometheus:
          address: http://prometheus.monitoring:9090
          query: |
            sum(rate(http_requests_total{job="{{args.service-name}}",port="{{ args.port }}",code=~"5.."}[5m]))
              /
            sum(rate(http_requests_total{job="{{args.service-name}}",port="{{ args.port }}"}[5m]))
    - name: latency
      interval: 5m
      failureLimit: 2
      successCondition: result[0] < 0.4 && result[0] > 0
      provider:
        prometheus:
          address: http://prometheus.monitoring:9090
          query: histogram_quantile(0.95, sum(rate(latency_bucket{job="{{args.service-name}}"}[5m])) by (le))
    - name: saturation
      interval: 5m
      failureLimit: 2
      successCondition: result[0] < 80
      provider:
        prometheus: {address: "http://prometheus.monitoring:9090", query: avg(cpu)}
"#;
    insta::assert_snapshot!(migrated(text));
}

#[test]
fn an_analysis_of_cloudwatch() {
    let text = r#"apiVersion: argoproj.io/v1alpha1
kind: ClusterAnalysisTemplate
metadata: {name: orders}
spec:
  args: [{name: table}]
  metrics:
    - name: throttled
      interval: 1m
      failureCondition: "any(result[0].Values, {# > 0.01})"
      provider:
        cloudWatch:
          interval: 30m
          metricDataQueries:
            - {id: rate, expression: throttled / requests}
            - id: throttled
              metricStat:
                metric:
                  namespace: AWS/DynamoDB
                  metricName: ThrottledRequests
                  dimensions: [{name: TableName, value: "{{args.table}}"}]
                period: 300
                stat: Sum
              returnData: false
            - id: requests
              metricStat: {metric: {namespace: Shop, metricName: Requests}, period: 300, stat: Sum}
              returnData: false
"#;
    insta::assert_snapshot!(migrated(text));
}

/// A template with one metric of these fields.
fn with(metric: &str) -> String {
    format!(
        "apiVersion: argoproj.io/v1alpha1\nkind: AnalysisTemplate\nmetadata: {{name: a}}\nspec:\n  args: [{{name: free}}]\n  metrics:\n  \
         - name: m\n    {}\n",
        metric.replace('\n', "\n    ")
    )
}

#[test]
fn what_does_not_map_is_refused_at_its_field() {
    let prometheus = "provider: {prometheus: {address: https://p.test, query: up}}";
    for (metric, expected) in [
        (
            "successCondition: result < 1\nprovider: {web: {url: https://shop.test/health}}".to_owned(),
            "spec.metrics[0].provider.web: \"web\" has no source here: values come from Prometheus and CloudWatch, or from a service on \
             the bus that answers `get-sli.triggered`",
        ),
        ("provider: {job: {spec: {}}}".into(), "a Job whose end decides is an executor of the task `evaluation`"),
        (
            format!("successCondition: isNaN(result) || result < 1\n{prometheus}"),
            "successCondition: holds where there is no number",
        ),
        (
            format!("failureCondition: \"!isNaN(result) && result > 1\"\n{prometheus}"),
            "failureCondition: the opposite of the condition holds where there is no number",
        ),
        (format!("successCondition: result[0] / result[1] < 1\n{prometheus}"), "successCondition: `result[0] / result[1] < 1`"),
        (format!("successCondition: result < {{{{args.free}}}}\n{prometheus}"), "{{args.free}}, which has no value"),
        (format!("interval: soon\n{prometheus}"), "interval: \"soon\" is no interval"),
        (format!("succesCondition: result < 1\n{prometheus}"), "did you mean `successCondition`?"),
        ("provider: {prometheus: {address: https://p.test}}".into(), "provider.prometheus.query: is missing"),
        ("provider: {prometheus: {query: 'x{a=\"{{args.other}}\"}'}}".into(), "{{args.other}}, which is none of spec.args"),
        ("provider: {prometheus: {query: 'x{a=\"$SERVICE\"}'}}".into(), "contains `$SERVICE`, which evaluations replace"),
        (
            "provider: {prometheus: {query: x, headers: [{key: a, value: b}]}}".into(),
            "prometheus.headers: a source gets no headers",
        ),
        ("provider: {prometheus: {query: x, rangeQuery: {step: 1m}}}".into(), "prometheus.rangeQuery: an indicator is one number"),
        ("provider: {cloudWatch: {interval: 1m}}".into(), "provider.cloudWatch.metricDataQueries: is missing"),
        ("failureLimit: 1".into(), "provider: is missing"),
    ] {
        let told = refused(&with(&metric));
        assert!(told.contains(expected), "{metric}\n{told}");
    }
}

#[test]
fn what_is_no_analysis_is_refused() {
    let two = format!(
        "{}  - name: n\n    provider: {{cloudWatch: {{metricDataQueries: []}}}}\n",
        with("provider: {prometheus: {query: up}}")
    );
    let argument = |argument: &str| with("provider: {prometheus: {query: up}}").replace("{name: free}", argument);
    for (text, expected) in [
        (
            "kind: Rollout\nspec: {}".to_owned(),
            "kind: \"Rollout\" is not migrated: only AnalysisTemplate and ClusterAnalysisTemplate are",
        ),
        ("kind: AnalysisTemplate\nspec: {}".into(), "write `apiVersion: argoproj.io/v1alpha1`"),
        ("apiVersion: argoproj.io/v1alpha1\nkind: AnalysisTemplate\nspec: {metrics: []}".into(), "spec.metrics: has no metric"),
        (
            with("provider: {prometheus: {query: up}}") + "  templates: [{templateName: b}]\n",
            "spec.templates: names other templates",
        ),
        (with("provider: {prometheus: {query: up}}") + "  dryRun: [{metricName: 'm[0-9]'}]\n", "is an expression: write the names"),
        (two, "spec.metrics[1].provider: asks another source"),
        (
            argument("{name: a, valueFrom: {secretKeyRef: {name: s, key: k}}}"),
            "spec.args[0].valueFrom: takes the value from Kubernetes",
        ),
        (argument("{name: lab, value: x}"), "\"lab\" would stand for the beginning of `$LABEL.`"),
        (argument("{name: a, value: 'b\"c'}"), "\"a\" has quotes or backslashes"),
        (String::new(), "holds no document"),
        ("a: [".into(), "error"),
    ] {
        let told = refused(&text);
        assert!(told.contains(expected), "{text}\n{told}");
    }
}
