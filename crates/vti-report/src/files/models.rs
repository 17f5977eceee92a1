//! `models.csv`.

use vti::answer::{ModelAnswer, Quantity};

use super::{Cells, CsvTable, FileError};

/// `models.csv`: every model that was met.
pub fn models_csv(models: &[ModelAnswer], cells: Cells) -> Result<Vec<u8>, FileError> {
    let names = ["model", "label", "size", "q", "corrected", "se", "exact", "log_evidence", "log_evidence_se", "khat"];
    let mut table = CsvTable::new(cells, names)?;
    let cell = |value: Option<f64>| value.map_or_else(String::new, |value| value.to_string());
    for ModelAnswer { word, label, size, probability, log_evidence, khat } in models {
        let Quantity { q, corrected, se, exact } = *probability;
        table.row([
            word.clone(),
            label.clone(),
            size.to_string(),
            cell(Some(q).filter(|q| !q.is_nan())),
            corrected.to_string(),
            se.to_string(),
            cell(exact),
            cell(log_evidence.map(|evidence| evidence.value)),
            cell(log_evidence.map(|evidence| evidence.se)),
            cell(*khat),
        ])?;
    }
    table.bytes()
}
