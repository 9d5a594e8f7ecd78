/**
 * Vectors with one number per token, packed little-endian into Avro {@code bytes}.
 *
 * <p>A list of boxed numbers costs about ten times the encoding time and sixty bytes of garbage per token. Packed
 * vectors are read in place: {@link dev.millrace.schemas.packed.PackedInts},
 * {@link dev.millrace.schemas.packed.PackedFloats} and {@link dev.millrace.schemas.packed.PackedMask} index into
 * the buffer that the record's getter returns. They look at the bytes between the buffer's position and limit,
 * never move either, and ignore the buffer's byte order.
 *
 * <p>In the schema the field carries a {@link dev.millrace.schemas.packed.PackedType logical type}, so that readers in
 * other languages can decode the plain bytes, for example with {@code numpy.frombuffer}.
 */
@NullMarked
package dev.millrace.schemas.packed;

import org.jspecify.annotations.NullMarked;
