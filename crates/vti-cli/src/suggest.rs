//! "Did you mean".

use crate::shown::{listed, shown};

/// Longer names are not compared: nobody mistypes them.
const LONGEST: usize = 200;

/// The nearest of several names, if one is near.
pub(crate) fn nearest<'a>(wrong: &str, names: &'a [String]) -> Option<&'a str> {
    if wrong.len() > LONGEST {
        return None;
    }
    let lower = wrong.to_lowercase();
    let near = names.iter().filter(|name| name.len() <= LONGEST);
    let near = near.map(|name| (strsim::jaro_winkler(&lower, &name.to_lowercase()), name));
    let (likeness, best) = near.max_by(|(a, _), (b, _)| a.total_cmp(b))?;
    (likeness > 0.75).then_some(best)
}

/// A hint for an error message, on a line of its own.
pub(crate) fn did_you_mean(wrong: &str, names: &[String]) -> String {
    match nearest(wrong, names) {
        Some(name) => format!("\nhint: did you mean {}?", shown(name)),
        None if names.is_empty() => String::new(),
        None => {
            let names_shown = listed(names.iter().map(|name| (name.as_str(), String::new())), names.len());
            format!("\nhint: there are {names_shown}")
        }
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
