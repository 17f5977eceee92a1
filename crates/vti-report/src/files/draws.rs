//! Draws as CSV.

use vti::answer::Samples;

use super::{ACTIVE, Cells, CsvTable, FIRST, FileError};

/// What a parameter's column is called in tables of draws: as the parameter, unless another column is called that.
///
/// ```
/// use vti_report::files::column_name;
/// assert_eq!((column_name("age"), column_name("word")), ("age".into(), "word.parameter".to_string()));
/// ```
pub fn column_name(parameter: &str) -> String {
    if FIRST.contains(&parameter) || parameter == ACTIVE { format!("{parameter}.parameter") } else { parameter.into() }
}

/// One line per draw; cells of parameters that a model does not have are empty.
pub fn draws_csv(samples: &Samples, cells: Cells) -> Result<Vec<u8>, FileError> {
    let names = samples.names.iter().map(|name| column_name(name));
    let mut table = CsvTable::new(cells, FIRST.into_iter().map(String::from).chain(names))?;
    for row in 0..samples.len() {
        let model = &samples.models[samples.model[row]];
        let numbers = [samples.log_q[row], samples.log_target[row], samples.log_weight[row]].map(|x| x.to_string());
        let values = (0..samples.names.len())
            .map(|parameter| samples.value(row, parameter).map_or_else(String::new, |value| value.to_string()));
        let texts = [model.label.clone(), model.word.clone()];
        table.row(texts.into_iter().chain(numbers).chain(values))?;
    }
    table.bytes()
}
