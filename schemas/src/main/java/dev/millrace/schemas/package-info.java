/**
 * Record classes that Avro's compiler generates from {@code src/main/avro}: one per topic, with every field documented
 * there.
 *
 * <p>Records are plain data. A getter returns null where the schema is a union with null; the generated code has no
 * annotation for it, so this package alone is not null-marked.
 */
@NullUnmarked
package dev.millrace.schemas;

import org.jspecify.annotations.NullUnmarked;
