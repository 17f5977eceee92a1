//! How much memory there is.

use std::path::{Path, PathBuf};

/// Bytes that this process can still have: what the system has free, what its control groups leave it, and what its own limit on
/// addresses does. None where the system does not say.
pub(crate) fn available() -> Option<f64> {
    let proc = Path::new("/proc");
    let free = kilobytes(&proc.join("meminfo"), "MemAvailable:");
    [free, address_space(proc), groups(proc)].into_iter().flatten().reduce(f64::min)
}

/// The number of a line `name number kB`, in bytes.
fn kilobytes(path: &Path, name: &str) -> Option<f64> {
    let text = std::fs::read_to_string(path).ok()?;
    let number = text.lines().find_map(|line| line.strip_prefix(name))?;
    Some(number.trim().trim_end_matches("kB").trim().parse::<f64>().ok()? * 1024.0)
}

/// What the limit on addresses leaves.
fn address_space(proc: &Path) -> Option<f64> {
    let limits = std::fs::read_to_string(proc.join("self/limits")).ok()?;
    let line = limits.lines().find_map(|line| line.strip_prefix("Max address space"))?;
    let limit: f64 = line.split_whitespace().next()?.parse().ok()?;
    Some((limit - kilobytes(&proc.join("self/status"), "VmSize:")?).max(0.0))
}

/// What the tightest of the control groups of this process leaves, by either version of them.
fn groups(proc: &Path) -> Option<f64> {
    let text = std::fs::read_to_string(proc.join("self/cgroup")).ok()?;
    let of_line = |line: &str| {
        let mut fields = line.splitn(3, ':').skip(1);
        let (controllers, group) = (fields.next()?, fields.next()?.trim_start_matches('/'));
        let (root, names) = match controllers {
            "" => ("/sys/fs/cgroup", ["memory.max", "memory.current", "inactive_file "]),
            _ if controllers.split(',').any(|name| name == "memory") => {
                ("/sys/fs/cgroup/memory", ["memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file "])
            }
            _ => return None,
        };
        // A container may see its own group as the root.
        let groups: Vec<PathBuf> = Path::new(group).ancestors().map(|group| Path::new(root).join(group)).collect();
        groups.iter().filter_map(|group| left(group, names)).reduce(f64::min)
    };
    text.lines().filter_map(of_line).reduce(f64::min)
}

/// What a group leaves: its limit, less what is in use and could not be given back at once.
fn left(group: &Path, [limit, used, cached]: [&str; 3]) -> Option<f64> {
    let number = |name: &str| std::fs::read_to_string(group.join(name)).ok()?.trim().parse::<f64>().ok();
    let stat = std::fs::read_to_string(group.join("memory.stat")).unwrap_or_default();
    let cached = stat.lines().find_map(|line| line.strip_prefix(cached)?.trim().parse::<f64>().ok()).unwrap_or(0.0);
    Some((number(limit)? - (number(used)? - cached).max(0.0)).max(0.0))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_says_what_it_has() {
        assert!(available().is_none_or(|bytes| bytes > 1e6));
        assert!(available().is_some() || !cfg!(target_os = "linux"));
    }

    #[test]
    fn a_group_leaves_its_limit_less_what_is_in_use() {
        let dir = std::env::temp_dir().join(format!("vti-group-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let names = ["memory.max", "memory.current", "inactive_file "];
        for (limit, expected) in [("max", None), ("1000", Some(500.0)), ("400", Some(0.0))] {
            for (file, text) in
                [("memory.max", limit), ("memory.current", "700"), ("memory.stat", "inactive_file 200\n")]
            {
                std::fs::write(dir.join(file), format!("{text}\n")).unwrap();
            }
            assert_eq!(left(&dir, names), expected);
        }
        std::fs::remove_dir_all(&dir).unwrap();
    }
}
