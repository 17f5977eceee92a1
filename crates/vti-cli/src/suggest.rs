//! "Did you mean".

/// The nearest of several names, if one is near.
pub(crate) fn nearest<'a>(wrong: &str, names: &'a [String]) -> Option<&'a str> {
    let lower = wrong.to_lowercase();
    let likeness = |name: &str| strsim::jaro_winkler(&lower, &name.to_lowercase());
    let best = names.iter().max_by(|a, b| likeness(a).total_cmp(&likeness(b)))?;
    (likeness(best) > 0.75).then_some(best)
}

/// The most names that are listed.
const MOST: usize = 12;

/// A hint for an error message, on a line of its own.
pub(crate) fn did_you_mean(wrong: &str, names: &[String]) -> String {
    match nearest(wrong, names) {
        Some(name) => format!("\nhint: did you mean {name}?"),
        None if names.is_empty() => String::new(),
        None if names.len() <= MOST => format!("\nhint: there are {}", names.join(", ")),
        None => format!("\nhint: there are {}, … ({} in all)", names[..MOST].join(", "), names.len()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_names_are_suggested_and_others_listed() {
        let names = ["lcavol", "lweight", "Age"].map(String::from);
        assert_eq!(did_you_mean("lcavo", &names), "\nhint: did you mean lcavol?");
        assert_eq!(did_you_mean("age", &names), "\nhint: did you mean Age?");
        assert_eq!(did_you_mean("zzz", &names), "\nhint: there are lcavol, lweight, Age");
        let many: Vec<String> = (0..40).map(|i| format!("column{i}")).collect();
        assert!(did_you_mean("zzz", &many).ends_with("… (40 in all)"));
    }
}
