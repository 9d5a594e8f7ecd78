/**
 * Vectors with one number per token, packed little-endian into Avro {@code bytes}.
 *
 * <p>A list of boxed numbers costs about ten times the encoding time and sixty bytes of garbage per token. Packed
 * vectors are read in place: {@link dev.millrace.schemas.packed.PackedInts},
 * {@link dev.millrace.schemas.packed.PackedFloats} and {@link dev.millrace.schemas.packed.PackedMask} index into
 * the buffer that the record's getter returns. They look at the bytes between the buffer's position and limit,
 * never move either, and do not care about the buffer's byte order.
 *
 * <p>In the schema the field carries a {@link dev.millrace.schemas.packed.PackedType logical type}, so that a
 * reader in another language, who sees plain bytes, knows what is in them ({@code numpy.frombuffer} reads them).
 */
@NullMarked
package dev.millrace.schemas.packed;

import org.jspecify.annotations.NullMarked;
