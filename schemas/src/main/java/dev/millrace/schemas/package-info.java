/**
 * The records of the log as Avro's compiler makes them from {@code src/main/avro}: one per topic, every field documented
 * there.
 *
 * <p>Records are data: what follows from one is decided elsewhere. A getter gives null where the schema is a union with
 * null; the generated code does not say so, which is why this package alone is not null-marked.
 */
@NullUnmarked
package dev.millrace.schemas;

import org.jspecify.annotations.NullUnmarked;
