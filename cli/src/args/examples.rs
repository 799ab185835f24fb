//! The examples that each `--help` ends with. A test types every one of them.

pub const APPLY: &str = "Examples:
  keelway apply -f shipyard.yaml
  keelway apply -f project.yaml shipyard.yaml --dry-run
  generate | keelway apply -f - --project shop";
pub const GET: &str = "Examples:
  keelway get environments -p shop
  keelway get sequences -p shop
  keelway get approvals
  keelway get events -c 139a703f";
pub const GET_PROJECTS: &str = "Examples:
  keelway get projects
  keelway get projects -o json";
pub const GET_SERVICES: &str = "Examples:
  keelway get services -p shop";
pub const GET_ENVIRONMENTS: &str = "Examples:
  keelway get environments -p shop
  keelway get environments -p shop --stage production -o wide";
pub const GET_SEQUENCES: &str = "Examples:
  keelway get sequences -p shop
  keelway get sequences -p shop --state waitingForApproval
  keelway get sequences -p shop -c 139a703f -o wide";
pub const GET_EVENTS: &str = "Examples:
  keelway get events -c 139a703f
  keelway get events -p shop --stage staging --type sh.keptn.event.evaluation.finished -o json";
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
  keelway trigger delivery -p shop -s carts -i carts:1.4.0 --watch --exit-code --watch-timeout 30m";
pub const WATCH: &str = "Examples:
  keelway watch 139a703f 7500af7d
  keelway watch 139a703f --log
  keelway watch 139a703f --exit-code --watch-timeout 30m";
pub const APPROVE: &str = "Examples:
  keelway approve 139a703f
  keelway approve --stage production --service carts -m looks-good
  keelway approve 139a703f --wait 10m";
pub const DECLINE: &str = "Examples:
  keelway decline 139a703f -m too-slow";
pub const PAUSE: &str = "Examples:
  keelway pause sequence -c 139a703f";
pub const RESUME: &str = "Examples:
  keelway resume sequence -c 139a703f";
pub const ABORT: &str = "Examples:
  keelway abort sequence -c 139a703f --stage staging";
pub const CONTROLLED: &str = "Examples:
  keelway pause sequence -c 139a703f
  keelway resume sequence -c 139a703f --stage staging
  keelway abort sequence -p shop -c 139a703f";
pub const SEND: &str = "Examples:
  keelway send event -f event.json
  echo {} | keelway send event -f -";
pub const SHIPYARD: &str = "Examples:
  keelway shipyard validate shipyard.yaml
  keelway shipyard validate examples/shop -o json";
pub const EXECUTOR: &str = "Examples:
  keelway executor --name deployer --on deployment -- ./deploy.sh
  keelway executor --name tester --on test,evaluation -p shop --concurrency 4 --timeout 30m -- ./test.sh";
pub const DOCTOR: &str = "Examples:
  keelway doctor";
pub const COMPLETION: &str = "Examples:
  keelway completion bash";
pub const START: &str = "Examples:
  keelway apply -f shipyard.yaml
  keelway trigger delivery -p shop -s carts -i carts:1.4.0 --watch
  keelway get environments -p shop
  keelway approve 139a703f

Exit codes: 0 fine; 1 refused, failed or not found; 2 wrong usage, or a file that cannot be read.";
