//! Memory that tasks share out without overlap.

/// Memory that tasks share out by index without overlap.
///
/// # Safety
///
/// Parts of different indices must not overlap, so that each may be given to a thread of its own.
#[allow(unsafe_code)]
pub(crate) unsafe trait Parts: Sync {
    /// What one task gets.
    type Part;
    /// How many parts there are.
    fn count(&self) -> usize;
    /// Part `index`.
    ///
    /// # Safety
    ///
    /// `index` is below `count()`, and no part is alive twice at the same time.
    unsafe fn part(&self, index: usize) -> Self::Part;
}

/// A slice cut into chunks of equal length, the last one shorter if need be.
pub(crate) struct Chunks<'a, T> {
    at: *mut T,
    len: usize,
    chunk: usize,
    life: std::marker::PhantomData<&'a mut [T]>,
}

impl<'a, T> Chunks<'a, T> {
    pub(crate) fn new(slice: &'a mut [T], chunk: usize) -> Self {
        Self { at: slice.as_mut_ptr(), len: slice.len(), chunk: chunk.max(1), life: std::marker::PhantomData }
    }
}

// SAFETY: a `Chunks` is an exclusive borrow; threads reach disjoint chunks of it.
#[allow(unsafe_code)]
unsafe impl<T: Send> Sync for Chunks<'_, T> {}

// SAFETY: chunks `index · chunk ..` of different indices do not overlap.
#[allow(unsafe_code)]
unsafe impl<'a, T: Send> Parts for Chunks<'a, T> {
    type Part = &'a mut [T];

    fn count(&self) -> usize {
        self.len.div_ceil(self.chunk)
    }

    unsafe fn part(&self, index: usize) -> &'a mut [T] {
        let start = index * self.chunk;
        let len = self.chunk.min(self.len - start);
        // SAFETY: the range lies in the slice that is borrowed for `'a`, and the caller takes each index once at a time.
        unsafe { std::slice::from_raw_parts_mut(self.at.add(start), len) }
    }
}

// SAFETY: both halves are shared out without overlap.
#[allow(unsafe_code)]
unsafe impl<A: Parts, B: Parts> Parts for (A, B) {
    type Part = (A::Part, B::Part);

    fn count(&self) -> usize {
        self.0.count().min(self.1.count())
    }

    unsafe fn part(&self, index: usize) -> Self::Part {
        // SAFETY: passed on from the caller.
        unsafe { (self.0.part(index), self.1.part(index)) }
    }
}
