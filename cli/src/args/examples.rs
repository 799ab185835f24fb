//! The examples that each `--help` ends with. A test types every one of them.

pub const APPLY: &str = "Examples:
  keelway apply -f shipyard.yaml
  keelway apply -f project.yaml shipyard.yaml --dry-run
  keelway apply -f pipeline.yaml cluster.yaml githost.yaml
  keelway apply -f deploymentconfig.yaml
  keelway apply -f template.yaml --param TAG=1.4.0 --param REPLICAS=3
  generate | keelway apply -f - --project shop";
pub const GET: &str = "Examples:
  keelway get environments -p shop
  keelway get sequences -p shop
  keelway get approvals
  keelway get pipelines -p shop
  keelway get environments -p shop --watch
  keelway get events 139a703f";
pub const GET_PROJECTS: &str = "Examples:
  keelway get projects
  keelway get projects -o json";
pub const GET_SERVICES: &str = "Examples:
  keelway get services -p shop";
pub const GET_SHIPYARD: &str = "Examples:
  keelway get shipyard shop
  keelway get shipyard shop --revisions
  keelway get shipyard shop --revisions -o wide
  keelway get shipyard shop --revision 1f0c9d8";
pub const GET_ENVIRONMENTS: &str = "Examples:
  keelway get environments -p shop
  keelway get environments -p shop --stage production -o wide
  keelway get environments -p shop --stage production --history";
pub const GET_QUEUE: &str = "Examples:
  keelway get queue -p shop
  keelway get queue -p shop --stage production --service carts";
pub const GET_SEQUENCES: &str = "Examples:
  keelway get sequences -p shop
  keelway get sequences -p shop --state waitingForApproval
  keelway get sequences 139a703f -p shop -o wide";
pub const GET_EXECUTIONS: &str = "Examples:
  keelway get executions 139a703f
  keelway get executions -p shop --stage production --state waitingForApproval";
pub const GET_EVENTS: &str = "Examples:
  keelway get events 139a703f
  keelway get events -p shop --stage staging --type evaluation.finished -o json";
pub const CREATE: &str = "Examples:
  keelway create project shop -f shipyard.yaml
  keelway create service carts -p shop";
pub const CREATE_PROJECT: &str = "Examples:
  keelway create project shop -f shipyard.yaml
  keelway shipyard migrate old.yaml | keelway create project shop -f -";
pub const CREATE_SERVICE: &str = "Examples:
  keelway create service carts -p shop";
pub const DELETE: &str = "Examples:
  keelway delete pipeline carts -p shop
  keelway delete githost github --yes";
pub const DELETE_PROJECT: &str = "Examples:
  keelway delete project shop
  keelway delete project shop --abort --yes";
pub const DELETE_SERVICE: &str = "Examples:
  keelway delete service carts -p shop
  keelway delete service carts -p shop --abort";
pub const PIPELINE: &str = "Examples:
  keelway pipeline list -p shop
  keelway pipeline status carts -p shop --watch
  keelway pipeline explain carts -p shop --environment production
  keelway pipeline approve carts production -p shop
  keelway pipeline history shop/carts";
pub const PIPELINE_LIST: &str = "Examples:
  keelway pipeline list
  keelway pipeline list -p shop -o wide";
pub const PIPELINE_STATUS: &str = "Examples:
  keelway pipeline status carts -p shop
  keelway pipeline status carts -p shop --watch --exit-code --timeout 30m
  keelway pipeline status shop/carts -o wide";
pub const PIPELINE_HISTORY: &str = "Examples:
  keelway pipeline history carts -p shop
  keelway pipeline history carts -p shop --environment production -o wide";
pub const PIPELINE_EXPLAIN: &str = "Examples:
  keelway pipeline explain carts -p shop
  keelway pipeline explain carts -p shop --environment production";
pub const PIPELINE_APPROVE: &str = "Examples:
  keelway pipeline approve carts production -p shop
  keelway pipeline approve carts production 1.4.0 -p shop -m looks-good
  keelway pipeline approve carts production 1.4.0 -p shop --key-file approvals.key --key-id 2026-11";
pub const PIPELINE_DECLINE: &str = "Examples:
  keelway pipeline decline carts production 1.4.0 -p shop -m too-slow";
pub const PIPELINE_ACCEPT: &str = "Examples:
  keelway pipeline accept carts staging -p shop -m flaky-test";
pub const PIPELINE_SUSPEND: &str = "Examples:
  keelway pipeline suspend carts -p shop -m freeze";
pub const PIPELINE_RESUME: &str = "Examples:
  keelway pipeline resume carts -p shop";
pub const PIPELINE_HOLD: &str = "Examples:
  keelway pipeline hold carts production -p shop
  keelway pipeline hold carts production -p shop --revision 1.3.0 -m incident-7";
pub const PIPELINE_RELEASE: &str = "Examples:
  keelway pipeline release carts production -p shop";
pub const PIPELINE_ABANDON: &str = "Examples:
  keelway pipeline abandon carts -p shop --revision 1.4.0
  keelway pipeline abandon carts -p shop --revision 1.4.0 --environment production";
pub const PIPELINE_RETRY: &str = "Examples:
  keelway pipeline retry carts production -p shop";
pub const PIPELINE_ABORT: &str = "Examples:
  keelway pipeline abort carts production -p shop";
pub const PIPELINE_PULL_REQUESTS: &str = "Examples:
  keelway pipeline pull-requests carts -p shop";
pub const PIPELINE_MANIFEST: &str = "Examples:
  keelway pipeline manifest carts -p shop";
pub const OBSERVE: &str = "Examples:
  keelway observe -f release.yaml --cluster shop/eu-1
  kubectl get helmreleases -A -o yaml | keelway observe -f -";
pub const GET_APPROVALS: &str = "Examples:
  keelway get approvals
  keelway get approvals -p shop --stage production -o wide";
pub const TRIGGER: &str = "Examples:
  keelway trigger delivery -p shop -s carts -i registry.example/shop/carts:1.4.0 --watch
  keelway trigger sequence test -p shop -s carts --stage dev";
pub const TRIGGER_SEQUENCE: &str = "Examples:
  keelway trigger sequence test -p shop -s carts --stage dev --watch
  keelway trigger sequence test -p shop -s carts --stage dev --data test.kind=load,test.users:=50";
pub const TRIGGER_DELIVERY: &str = "Examples:
  keelway trigger delivery -p shop -s carts -i registry.example/shop/carts:1.4.0
  keelway trigger delivery -p shop -s carts -i carts:1.4.0 --values replicas:=2,canary:=true
  keelway trigger delivery -p shop -s carts -i carts:1.4.0 --watch --exit-code --timeout 30m";
pub const TRIGGER_EVALUATION: &str = "Examples:
  keelway trigger evaluation -p shop -s carts --stage staging --timeframe 10m --watch
  keelway trigger evaluation -p shop -s carts --stage staging --start 2026-11-20T15:00:00Z --end 2026-11-20T16:00:00Z";
pub const STATUS: &str = "Examples:
  keelway status
  keelway status -p shop --exit-code
  keelway status --watch --follow";
pub const WATCH: &str = "Examples:
  keelway watch 139a703f 7500af7d
  keelway watch 139a703f --log
  keelway watch 139a703f --exit-code --timeout 30m";
pub const APPROVE: &str = "Examples:
  keelway approve 139a703f
  keelway approve --stage production --service carts -m looks-good
  keelway approve 139a703f --wait 10m
  keelway approve shop/carts/production@1.4.0";
pub const DECLINE: &str = "Examples:
  keelway decline 139a703f -m too-slow
  keelway decline shop/carts/production@1.4.0 -m too-slow";
pub const PAUSE: &str = "Examples:
  keelway pause 139a703f";
pub const RESUME: &str = "Examples:
  keelway resume 139a703f";
pub const ABORT: &str = "Examples:
  keelway abort 139a703f --stage staging";
pub const RETRY: &str = "Examples:
  keelway retry 139a703f
  keelway retry 139a703f --from deployment --stage staging --watch";
pub const OVERRIDE: &str = "Examples:
  keelway override 139a703f -m INC-7
  keelway override 139a703f -m INC-7 --stage production";
pub const SEND: &str = "Examples:
  keelway send event -f event.json
  jq .event saved.json | keelway send event -f -";
pub const VALIDATE: &str = "Examples:
  keelway validate deploymentconfig.yaml
  keelway validate examples/deployments -o json
  keelway validate slo.yaml sli.yaml";
pub const GET_EVALUATIONS: &str = "Examples:
  keelway get evaluations -p shop
  keelway get evaluations -p shop --stage staging --service carts";
pub const EVALUATION: &str = "Examples:
  keelway evaluation show 8f0d3c1e -p shop
  keelway evaluation invalidate 8f0d3c1e -p shop
  keelway evaluation migrate analysis-template.yaml";
pub const EVALUATION_MIGRATE: &str = "Examples:
  keelway evaluation migrate analysis-template.yaml
  keelway evaluation migrate analysis-template.yaml --to shop/staging/carts";
pub const EVALUATION_SHOW: &str = "Examples:
  keelway evaluation show 8f0d3c1e -p shop
  keelway evaluation show 8f0d3c1e -p shop --stage staging --service carts -o json";
pub const EVALUATION_INVALIDATE: &str = "Examples:
  keelway evaluation invalidate 8f0d3c1e -p shop --stage staging --service carts";
pub const SET_SLI_PROVIDER: &str = "Examples:
  keelway set sli-provider prometheus -p shop";
pub const EVALUATE: &str = "Examples:
  keelway evaluate carts -p shop --stage staging --timeframe 30m --watch
  keelway evaluate -f slo.yaml --values values.json
  keelway evaluate -f slo.yaml --values values.json --history history.json -o json";
pub const RESOURCE: &str = "Examples:
  keelway resource add slo.yaml -p shop --stage staging --service carts
  keelway resource list -p shop --stage staging";
pub const RESOURCE_ADD: &str = "Examples:
  keelway resource add slo.yaml -p shop --stage staging --service carts
  keelway resource add queries.yaml --as prometheus/sli.yaml -p shop";
pub const RESOURCE_LIST: &str = "Examples:
  keelway resource list -p shop
  keelway resource list -p shop --stage staging --service carts";
pub const RESOURCE_SHOW: &str = "Examples:
  keelway resource show slo.yaml -p shop --stage staging --service carts";
pub const RESOURCE_DELETE: &str = "Examples:
  keelway resource delete slo.yaml -p shop --stage staging --service carts";
pub const SHIPYARD: &str = "Examples:
  keelway shipyard validate shipyard.yaml
  keelway shipyard show shipyard.yaml
  keelway shipyard migrate old.yaml";
pub const SHIPYARD_VALIDATE: &str = "Examples:
  keelway shipyard validate shipyard.yaml
  keelway shipyard validate examples/shop -o json";
pub const SHIPYARD_MIGRATE: &str = "Examples:
  keelway shipyard migrate old.yaml
  keelway shipyard migrate old.yaml | keelway apply -f - --project shop";
pub const SHIPYARD_SHOW: &str = "Examples:
  keelway shipyard show shipyard.yaml
  keelway shipyard show -p shop -o mermaid";
pub const SCHEMA: &str = "Examples:
  keelway schema Shipyard
  keelway schema DeploymentConfig
  keelway schema slo";
pub const EXECUTOR: &str = "Examples:
  keelway executor --name deployer --on deployment -- ./deploy.sh
  keelway executor --name tester --on test,evaluation -p shop --concurrency 4 --timeout 30m -- ./test.sh";
pub const GET_DEPLOYMENTS: &str = "Examples:
  keelway get deployments
  keelway get deployments --since 2026-11-20T00:00:00Z --status Failed";
pub const ROLLOUT: &str = "Examples:
  keelway rollout status carts -p shop
  keelway rollout latest shop/carts --watch
  keelway rollout history carts -p shop";
pub const ROLLOUT_LATEST: &str = "Examples:
  keelway rollout latest carts -p shop
  keelway rollout latest shop/carts --resume-triggers --watch
  keelway rollout latest shop/carts --image registry.example/carts:1.4.0";
pub const ROLLOUT_STATUS: &str = "Examples:
  keelway rollout status carts -p shop
  keelway rollout status shop/carts --revision 3 --timeout 10m
  keelway rollout status shop/carts --no-watch -o json";
pub const ROLLOUT_HISTORY: &str = "Examples:
  keelway rollout history carts -p shop
  keelway rollout history shop/carts --revision 3";
pub const ROLLOUT_UNDO: &str = "Examples:
  keelway rollout undo carts -p shop
  keelway rollout undo shop/carts --to 3 --dry-run";
pub const ROLLOUT_CANCEL: &str = "Examples:
  keelway rollout cancel carts -p shop
  keelway rollout cancel shop/carts --and-what-waits";
pub const ROLLOUT_RETRY: &str = "Examples:
  keelway rollout retry carts -p shop";
pub const ROLLOUT_PAUSE: &str = "Examples:
  keelway rollout pause carts -p shop -m freeze";
pub const ROLLOUT_RESUME: &str = "Examples:
  keelway rollout resume carts -p shop";
pub const ROLLOUT_PROCEED: &str = "Examples:
  keelway rollout proceed carts -p shop";
pub const ROLLBACK: &str = "Examples:
  keelway rollback carts -p shop --dry-run
  keelway rollback carts -p shop --to 3 -m regression
  keelway rollback shop/carts --application-only
  keelway rollback shop/web shop/api -m Monday
  keelway rollback carts -p shop --stage production --dry-run
  keelway rollback shipyard shop --to 3";
pub const ROLLBACK_SHIPYARD: &str = "Examples:
  keelway rollback shipyard shop --to 1f0c9d8 --dry-run
  keelway rollback shipyard shop --to 3";
pub const SET: &str = "Examples:
  keelway set triggers carts -p shop --resume";
pub const SET_TRIGGERS: &str = "Examples:
  keelway set triggers carts -p shop
  keelway set triggers shop/carts --manual
  keelway set triggers shop/carts --from-image carts:latest -c web --auto
  keelway set triggers shop/carts --resume";
pub const DIFF: &str = "Examples:
  keelway diff carts-3 carts-4 -p shop
  keelway diff shop/carts-3 shop/carts-4 --exit-code
  keelway diff shipyard shop 3 4";
pub const DIFF_SHIPYARD: &str = "Examples:
  keelway diff shipyard shop 3 4
  keelway diff shipyard shop 1f0c9d8 --exit-code";
pub const DEPLOYER: &str = "Examples:
  keelway deployer --config shop/carts -- ./deploy.sh
  keelway deployer -A --name eu-deployer --concurrency 4 --lease 2m -- ./deploy.sh";
pub const DEPLOY: &str = "Examples, in the command of keelway deployer:
  keelway deploy --until 10%
  keelway deploy";
pub const DEAD_LETTERS: &str = "Examples:
  keelway dead-letters list
  keelway dead-letters redrive --all";
pub const DEAD_LETTERS_LIST: &str = "Examples:
  keelway dead-letters list
  keelway dead-letters list -o json";
pub const DEAD_LETTERS_SHOW: &str = "Examples:
  keelway dead-letters show 1795222266686-0c2f";
pub const DEAD_LETTERS_REDRIVE: &str = "Examples:
  keelway dead-letters redrive 1795222266686-0c2f
  keelway dead-letters redrive --all";
pub const DEAD_LETTERS_DROP: &str = "Examples:
  keelway dead-letters drop 1795222266686-0c2f --yes";
pub const GET_INVALID: &str = "Examples:
  keelway get invalid
  keelway get invalid --day 2026-11-22 -o wide";
pub const WEBHOOK_DELIVERIES: &str = "Examples:
  keelway webhook deliveries -p shop
  keelway webhook deliveries -p shop --webhook slack
  keelway webhook deliveries 4gk2vbc7mz3qa -p shop";
pub const WEBHOOK: &str = "Examples:
  keelway webhook resume slack -p shop
  keelway webhook redeliver 4gk2vbc7mz3qa -p shop";
pub const WEBHOOK_RESUME: &str = "Examples:
  keelway webhook resume shop/slack";
pub const WEBHOOK_REDELIVER: &str = "Examples:
  keelway webhook redeliver 4gk2vbc7mz3qa -p shop";
pub const DOCTOR: &str = "Examples:
  keelway doctor
  keelway doctor --checklist";
pub const COMPLETION: &str = "Examples:
  keelway completion bash";
pub const VERSION: &str = "Examples:
  keelway version";
pub const START: &str = "Examples:
  keelway apply -f shipyard.yaml
  keelway trigger delivery -p shop -s carts -i carts:1.4.0 --watch
  keelway get environments -p shop
  keelway approve 139a703f
  keelway pipeline list

Exit codes: 0 fine; 1 refused, failed or not found; 2 wrong usage, or a file that cannot be read.";
pub const LOGIN: &str ="Examples:
  keelway login --api https://keelway.example.com
  keelway login production --api https://keelway.example.com --token keelway_ann_0123
  vault-read token | keelway login --api https://keelway.example.com

The token is asked for if neither --token nor KEELWAY_TOKEN has it. The file is ~/.config/keelway/config.yaml, or KEELWAY_CONFIG; KEELWAY_LOGIN
names the login for one command. KEELWAY_API and KEELWAY_TOKEN come first.";
pub const LOGIN_LIST: &str = "Examples:
  keelway login list";
pub const LOGIN_USE: &str = "Examples:
  keelway login use production";
pub const LOGIN_DELETE: &str = "Examples:
  keelway login delete production";
pub const WHOAMI: &str = "Examples:
  keelway whoami
  keelway whoami -o json";
pub const TOKEN: &str = "Examples:
  keelway token create ci --scope read,trigger --project shop --expires 90d
  keelway token list
  keelway token rotate ci --overlap 1h
  keelway token revoke ci";
pub const TOKEN_CREATE: &str = "Examples:
  keelway token create ci --scope read,trigger --project shop --expires 90d
  keelway token create tester --scope execute:test
  keelway token create operator --scope trigger,trigger:production
  keelway token create ann --scope read,approve:production --note release-manager";
pub const TOKEN_LIST: &str = "Examples:
  keelway token list
  keelway token list -o wide";
pub const TOKEN_ROTATE: &str = "Examples:
  keelway token rotate ci
  keelway token rotate ci --overlap 0";
pub const TOKEN_REVOKE: &str = "Examples:
  keelway token revoke ci";
pub const AUDIT: &str = "Examples:
  keelway audit
  keelway audit --by ci --since 24h -o wide
  keelway audit --project shop --action decide --limit 200";
