//! The reader of Parquet files panics at some that are broken, and believes others that say they are large: here both become errors.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::sync::Once;

use bytes::Bytes;
use parquet::column::page::Page;
use parquet::errors::ParquetError;
use parquet::file::reader::{FileReader, RowGroupReader, SerializedFileReader};

thread_local! {
    /// Whether this thread reads a file that may be broken.
    static IS_READING: Cell<bool> = const { Cell::new(false) };
}

/// Opens a Parquet file none of whose dictionaries says that it has more values than bytes: room would be made for all of them.
pub fn open(bytes: Bytes) -> Result<SerializedFileReader<Bytes>, ParquetError> {
    let reader = SerializedFileReader::new(bytes)?;
    for group in 0..reader.num_row_groups() {
        let group = reader.get_row_group(group)?;
        (0..group.num_columns()).try_for_each(|column| check_dictionaries(&*group, column))?;
    }
    Ok(reader)
}

fn check_dictionaries(group: &dyn RowGroupReader, column: usize) -> Result<(), ParquetError> {
    let mut pages = group.get_column_page_reader(column)?;
    while let Some(page) = pages.get_next_page()? {
        if let Page::DictionaryPage { buf, num_values, .. } = page
            && num_values as usize > buf.len()
        {
            return Err(ParquetError::General(format!("a dictionary of {num_values} values in {} bytes", buf.len())));
        }
    }
    Ok(())
}

/// Reads a Parquet file; a panic on the way is what `broken` makes of it, and nothing is printed about it.
pub fn reading<T, E>(read: impl FnOnce() -> Result<T, E>, broken: impl FnOnce(ParquetError) -> E) -> Result<T, E> {
    static QUIET: Once = Once::new();
    QUIET.call_once(|| {
        let others = take_hook();
        set_hook(Box::new(move |panic| {
            if !IS_READING.get() {
                others(panic);
            }
        }));
    });
    let before = IS_READING.replace(true);
    // What was read is thrown away where it is not whole.
    let found = catch_unwind(AssertUnwindSafe(read));
    IS_READING.set(before);
    found.unwrap_or_else(|_| Err(broken(ParquetError::General("the file is damaged".into()))))
}
