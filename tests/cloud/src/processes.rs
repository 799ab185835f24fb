//! The processes of deployed functions, where the emulator runs them on this machine ([`crate::Ability::Processes`]).

/// Ids of the processes that run this function, by the name the Lambda runtime tells them.
pub fn of_function(function: &str) -> Vec<u32> {
    with_variable("AWS_LAMBDA_FUNCTION_NAME", function)
}

/// Ids of the processes that were started with this variable.
pub fn with_variable(name: &str, value: &str) -> Vec<u32> {
    let wanted = format!("{name}={value}");
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let has_it = |pid: &u32| {
        let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|variable| variable == wanted.as_bytes())
    };
    pids.filter(has_it).collect()
}
