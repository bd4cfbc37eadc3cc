//! The only room with `unsafe`: layouts, symbols and safe calls of the vendor library.
