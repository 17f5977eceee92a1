//! From a file to a response and terms, to the nodes of a graph, or to a series.

mod categories;
mod columns;
mod csv;
mod dates;
mod edges;
mod encode;
mod error;
mod formula;
mod interventions;
mod missing;
mod nodes;
mod offset;
mod parquet;
mod products;
mod raw;
mod response;
mod schema;
mod series;
mod soundings;
mod source;
mod table;
mod tidy;

use vti::problem::selection::{Likelihood, RegressionData, SelectionError, SelectionSettings, TableError};

pub(crate) use categories::Said;
pub(crate) use columns::{ColumnChoice, LoadedColumns};
pub(crate) use edges::{Edges, EdgesError, parse as parse_edges, read as read_edges};
pub(crate) use encode::{Encoded, Reason};
pub(crate) use error::DataError;
pub(crate) use missing::{Missing, Words};
pub(crate) use nodes::{ALL, NodeChoice, Nodes};
pub(crate) use offset::Offset;
pub(crate) use raw::{Cell, Raw};
pub(crate) use schema::{Choice, Schema};
pub(crate) use series::{LoadedSeries, SeriesChoice, moment};
pub(crate) use soundings::{LayerChoice, LayerColumns, LoadedLayers, Measured};
pub(crate) use source::{BUILTIN_PREFIX, STDIN, Source, is_path};
pub use table::{Table, Values};

/// A response and terms, and where they came from.
#[derive(Debug)]
pub(crate) struct Loaded {
    pub(crate) table: RegressionData,
    pub(crate) schema: Schema,
    pub(crate) fingerprint: String,
    /// What the user should know about how the file was understood.
    pub(crate) notes: Vec<String>,
    raw: Raw,
}

/// Makes terms of the columns of a table.
pub(crate) fn load(source: &Source, choice: &Choice, likelihood: &Likelihood) -> Result<Loaded, DataError> {
    let mut raw = source.parse(&Words::new(&choice.missing_values))?;
    let (schema, mut notes) = Schema::learn(&mut raw, choice, likelihood)?;
    let response = schema.response(&raw)?;
    let terms = schema.terms(&raw)?.terms;
    let (offset, weights) = (schema.offset(&raw)?, offset::weights(choice.weights.as_deref(), &raw)?);
    let (response_name, categories) = (schema.response.clone(), schema.response_levels.clone().unwrap_or_default());
    let table = RegressionData { response_name, response, categories, terms, offset, weights };
    notes.extend(schema.notes());
    notes.extend(raw.decimal_commas.then(|| "numbers are read with decimal commas".to_string()));
    Ok(Loaded { table, notes, schema, fingerprint: source.fingerprint(), raw })
}

impl Loaded {
    /// Fewer rows than a model needs have a message of their own.
    pub(crate) fn check_rows(&self, settings: &SelectionSettings) -> Result<(), DataError> {
        let (file, rows) = (self.raw.file.clone(), self.raw.rows());
        let columns = self.table.terms.iter().map(|term| term.columns.len()).sum();
        if rows < 3 {
            return Err(DataError::FewRows { file, rows, needed: 3 });
        }
        if settings.prior.is_g() && rows < columns + 2 {
            return Err(DataError::FewRowsForG { file, rows, columns });
        }
        Ok(())
    }

    /// Says where in the file it is what the library found.
    pub(crate) fn locate(&self, error: SelectionError) -> anyhow::Error {
        match error {
            SelectionError::Data(TableError::Response { row, value, expected }) => DataError::Response {
                file: self.raw.file.clone(),
                place: self.raw.place(row - 1),
                column: self.table.response_name.clone(),
                value,
                expected,
            }
            .into(),
            other => anyhow::Error::new(other).context(self.raw.file.clone()),
        }
    }

    pub(crate) fn rows(&self) -> usize {
        self.raw.rows()
    }
}
