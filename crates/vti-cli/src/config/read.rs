//! From tables of keys to settings.

use serde::Serialize;
use serde::de::DeserializeOwned;
use toml::{Table, Value};

use super::{Config, ConfigError, FamilySettings, ProblemConfig, VERSION, section_table};

/// Keys that stand in a section beside those of the library's settings.
const SOURCE_KEYS: [&str; 6] = ["data", "include", "exclude", "missing", "missing_values", "fingerprint"];
const MACHINE_KEYS: [&str; 5] = ["threads", "device", "precision", "replicates", "method"];
const CHAINS_KEYS: [&str; 2] = ["refine", "chains"];
/// What stands around a flow, in its section.
pub(super) const AROUND_KEYS: [&str; 3] = ["context", "preconditioner", "structure"];

const SECTIONS: [&str; 7] = ["problem", "models", "flow", "train", "check", "search", "output"];

/// Keys of earlier versions: where they stand, and what they are called now.
const RENAMED: [(&[&str], &str, &str); 4] = [
    (&["flow"], "frame", "preconditioner"),
    (&["train", "information"], "hold", "warm_up"),
    (&["train", "information"], "most", "max_warm_up"),
    (&["models", "learning"], "baseline", "control_variate"),
];

/// Calls keys of earlier versions what they are called now.
fn rename(table: &mut Table) {
    for (sections, old, new) in RENAMED {
        let place = sections.iter().try_fold(&mut *table, |place, section| place.get_mut(*section)?.as_table_mut());
        if let Some(place) = place
            && let Some(value) = place.remove(old)
        {
            place.insert(new.into(), value);
        }
    }
}

/// Changes a key: `section.key=value`, the value as TOML, or else as text.
pub(super) fn set(table: &mut Table, text: &str) -> Result<(), ConfigError> {
    let wrong = |reason: &str| ConfigError::Set { text: text.into(), reason: reason.into() };
    let (key, value) = text.split_once('=').ok_or_else(|| wrong("there is no `=`"))?;
    let value = value.trim();
    let value = match toml::from_str::<Table>(&format!("value = {value}")) {
        Ok(mut parsed) => whole(parsed.remove("value").ok_or_else(|| wrong("there is no value"))?, value),
        Err(_) => Value::from(value),
    };
    let mut keys: Vec<&str> = key.trim().split('.').collect();
    let last = keys.pop().filter(|last| !last.is_empty()).ok_or_else(|| wrong("there is no key"))?;
    if keys.is_empty() {
        return Err(wrong("the key needs a section"));
    }
    let mut place = table;
    for key in keys {
        let next = place.entry(key).or_insert_with(|| Value::Table(Table::new()));
        place = next.as_table_mut().ok_or_else(|| wrong("the key is below another that is no section"))?;
    }
    place.insert(last.into(), value);
    Ok(())
}

/// A whole number that is written with an exponent, such as 1e6, as one; everything else as it is.
fn whole(value: Value, text: &str) -> Value {
    /// Beyond it not every whole number has a place.
    const EXACT: f64 = (1u64 << 53) as f64;
    match value {
        Value::Float(x) if !text.contains('.') && x.fract() == 0.0 && x.abs() <= EXACT => Value::Integer(x as i64),
        other => other,
    }
}

/// Turns tables into settings, and says where something is wrong.
pub(super) struct Reader<'a> {
    pub(super) file: &'a str,
    pub(super) text: &'a str,
}

impl Reader<'_> {
    pub(super) fn config(&self, mut table: Table) -> Result<Config, ConfigError> {
        if let Some(found) = table.remove("version").filter(|found| found.as_str() != Some(VERSION)) {
            let found = found.as_str().map_or_else(|| found.to_string(), String::from);
            return Err(ConfigError::Version { file: self.file.into(), found });
        }
        rename(&mut table);
        if let Some(key) = table.keys().find(|key| !SECTIONS.contains(&key.as_str())) {
            return Err(self.unknown("", key, SECTIONS.map(String::from).to_vec()));
        }
        if !table.contains_key("problem") {
            return Err(ConfigError::NoProblem { file: self.file.into() });
        }
        let mut tables = SECTIONS.map(|name| (name, Table::new()));
        for (name, place) in &mut tables {
            match table.remove(*name) {
                None => {}
                Some(Value::Table(found)) => *place = found,
                Some(_) => return Err(self.wrong(name, None, "is a section, not a value")),
            }
        }
        let [mut problem, models, mut flow, mut train, mut check, search, output] = tables.map(|(_, table)| table);
        let source = take(&mut problem, &SOURCE_KEYS);
        let machine = take(&mut train, &MACHINE_KEYS);
        let chains = take(&mut check, &CHAINS_KEYS);
        let around = take(&mut flow, &AROUND_KEYS);
        if train.contains_key("checkpoint") {
            let message =
                "checkpoint is not a setting: the run directory holds it\nhint: output.checkpoint_every says how often";
            return Err(self.wrong("train", self.line("train", "checkpoint"), message));
        }
        if search.contains_key("seed") {
            let message = "seed is not a setting of its own here\nhint: train.seed is the seed of all randomness";
            return Err(self.wrong("search", self.line("search", "seed"), message));
        }
        let problem: ProblemConfig = self.section("problem", problem, &SOURCE_KEYS)?;
        let default = FamilySettings::default();
        let family = FamilySettings {
            models: self.section("models", or_default("models", models, &default.models)?, &[])?,
            flow: self.section("flow", or_default("flow", sized(flow), &default.flow)?, &AROUND_KEYS)?,
            ..self.section("flow", around, &[])?
        };
        Ok(Config {
            source: self.section("problem", source, &[])?,
            family,
            train: self.section("train", over("train", train, &problem.default_train())?, &MACHINE_KEYS)?,
            machine: self.section("train", machine, &[])?,
            check: self.section("check", over("check", check, &problem.default_check())?, &CHAINS_KEYS)?,
            chains: self.section("check", chains, &[])?,
            search: self.section("search", search, &[])?,
            output: self.section("output", output, &[])?,
            problem,
        })
    }

    /// Settings of a section; `others` are keys of it that belong to other settings.
    fn section<T: DeserializeOwned>(&self, name: &str, table: Table, others: &[&str]) -> Result<T, ConfigError> {
        Value::Table(table).try_into().map_err(|error| self.explain(name, &error, others))
    }

    /// What serde did not like, in our words.
    fn explain(&self, section: &str, error: &toml::de::Error, others: &[&str]) -> ConfigError {
        let message = error.message();
        let quoted: Vec<String> = message.split('`').skip(1).step_by(2).map(String::from).collect();
        if let (true, [key, names @ ..]) = (message.starts_with("unknown field"), &quoted[..]) {
            let names = names.iter().cloned().chain(others.iter().map(|other| (*other).to_string())).collect();
            return self.unknown(section, key, names);
        }
        let line = quoted.first().and_then(|key| self.line(section, key));
        let message = message.replace("missing field", "needs the key").trim().to_string();
        self.wrong(section, line, &message)
    }

    fn unknown(&self, section: &str, key: &str, names: Vec<String>) -> ConfigError {
        let line = self.line(section, key);
        ConfigError::UnknownKey { file: self.file.into(), line, section: section.into(), key: key.into(), names }
    }

    fn wrong(&self, section: &str, line: Option<usize>, message: &str) -> ConfigError {
        ConfigError::Section { file: self.file.into(), line, section: section.into(), message: message.into() }
    }

    /// The line of a key in its section; of a section where there is no section before it.
    fn line(&self, section: &str, key: &str) -> Option<usize> {
        let mut current = "";
        for (index, line) in self.text.lines().enumerate() {
            let line = line.trim();
            if let Some(name) = line.strip_prefix('[').and_then(|rest| rest.split(']').next()) {
                current = name.trim();
                if section.is_empty() && current == key {
                    return Some(index + 1);
                }
                continue;
            }
            let found = line.split('=').next().unwrap_or_default().trim();
            let inside = current == section || current.starts_with(&format!("{section}."));
            if inside && (found == key || found.starts_with(&format!("{key}."))) {
                return Some(index + 1);
            }
        }
        None
    }
}

/// Takes some keys out of a table.
pub(super) fn take(table: &mut Table, keys: &[&str]) -> Table {
    keys.iter().filter_map(|key| table.remove_entry(*key)).collect()
}

/// A flow of which only sizes are given is of splines, with usual sizes for the others.
fn sized(mut table: Table) -> Table {
    const USUAL: [(&str, i64); 3] = [("layers", 4), ("blocks", 2), ("hidden", 64)];
    let is_size = |(key, _): &(&str, i64)| table.get(*key).is_some_and(Value::is_integer);
    let is_open = table.get("kind").is_none_or(|kind| kind.as_str() == Some("auto"));
    if is_open && USUAL.iter().any(is_size) {
        table.insert("kind".into(), Value::from("spline"));
        for (key, usual) in USUAL {
            table.entry(key).or_insert_with(|| Value::from(usual));
        }
    }
    table
}

/// Keys over those of default settings.
fn over(section: &str, table: Table, default: &impl Serialize) -> Result<Table, ConfigError> {
    let mut merged = section_table(section, default)?;
    merged.extend(table);
    Ok(merged)
}

/// Settings of one kind of several: the default where nothing is said, chosen automatically where no kind is named.
fn or_default(section: &str, mut table: Table, default: &impl Serialize) -> Result<Table, ConfigError> {
    if table.is_empty() {
        return section_table(section, default);
    }
    table.entry("kind").or_insert_with(|| Value::from("auto"));
    Ok(table)
}
