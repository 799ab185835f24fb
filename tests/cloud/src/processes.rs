//! The processes of deployed functions, where the emulator runs them on this machine ([`crate::Ability::Processes`]).

/// Ids of the processes that run this function, by the name the Lambda runtime tells them.
pub fn of_function(function: &str) -> Vec<u32> {
    let wanted = format!("AWS_LAMBDA_FUNCTION_NAME={function}");
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let of_function = |pid: &u32| {
        let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|variable| variable == wanted.as_bytes())
    };
    pids.filter(of_function).collect()
}
