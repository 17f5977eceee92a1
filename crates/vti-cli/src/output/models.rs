//! `models.csv`: every model that was met.

use anyhow::Result;

use crate::answer::Answer;

pub(crate) fn csv(answer: &Answer<'_>) -> Result<Vec<u8>> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record([
        "model",
        "label",
        "size",
        "q",
        "corrected",
        "se",
        "exact",
        "log_evidence",
        "log_evidence_se",
        "khat",
    ])?;
    let cell = |value: Option<f64>| value.map_or_else(String::new, |value| value.to_string());
    for model in answer.corrections() {
        let model = answer.model(model);
        writer.write_record([
            model.word,
            model.label,
            model.size.to_string(),
            model.q.to_string(),
            model.corrected.to_string(),
            model.se.to_string(),
            cell(model.exact),
            cell(model.log_evidence.map(|evidence| evidence.value)),
            cell(model.log_evidence.map(|evidence| evidence.se)),
            cell(model.khat),
        ])?;
    }
    super::finish_csv(writer)
}
