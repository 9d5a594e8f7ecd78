/**
 * Registries for the schema ids at the start of every record.
 *
 * <p>An unreachable registry is an error of the registry, and is retried. An unknown id is an error of the record,
 * which becomes a dead letter.
 */
@NullMarked
package dev.millrace.schemas.registry;

import org.jspecify.annotations.NullMarked;
