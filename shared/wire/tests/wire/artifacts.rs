//! `kind: ArtifactSource`: what is read. What is refused is in `refusals/artifactsource.yaml`.

use keelway_domain::deployments::registry::{ArtifactSource, Origin, Repository};
use keelway_wire::manifest::{self, ArtifactSourceManifest, Document};

const SOURCE: &str = "\
apiVersion: keelway.dev/v1
kind: ArtifactSource
metadata: {name: carts, namespace: shop}
spec:
  ecr: {repository: shop/carts, account: '123456789012', region: eu-west-1}
  tags: [{name: v1, pattern: 'v1.*'}]
";

fn read(text: &str) -> ArtifactSourceManifest {
    let parsed = manifest::parse(text, "-");
    match &parsed.documents[..] {
        [Document::ArtifactSource(source)] => source.clone(),
        other => panic!("{other:?} {:?}", parsed.findings),
    }
}

#[test]
fn sources_are_repositories_or_webhooks() {
    let source = read(SOURCE);
    let repository =
        Repository { account: Some("123456789012".into()), region: Some("eu-west-1".into()), name: "shop/carts".into() };
    let artifacts = ArtifactSource {
        from: Origin::Ecr(repository),
        tags: [("v1".into(), "v1.*".into())].into(),
        images: vec![],
        vouched: false,
    };
    assert_eq!((source.namespace.as_str(), source.name.as_str(), &source.artifacts), ("shop", "carts", &artifacts));
    let hook =
        SOURCE.replace("ecr: {repository: shop/carts, account: '123456789012', region: eu-west-1}", "webhook: {secret: hook-key}");
    let source = read(&hook.replace("name: carts", "name: my_carts"));
    assert_eq!((source.name.as_str(), &source.artifacts.from), ("my_carts", &Origin::Webhook { secret: "hook-key".into() }));
    // What a webhook may name.
    let listed = read(&format!("{hook}  images: ['registry.test/shop/*', 's3://releases/shop-*.zip', '*']\n"));
    assert_eq!(listed.artifacts.images, ["registry.test/shop/*", "s3://releases/shop-*.zip", "*"]);
}
