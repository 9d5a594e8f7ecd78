/**
 * Where the id in front of every record comes from, and the schema behind an id.
 *
 * <p>A registry that is out of reach is an error of the registry; an id that it does not know is an error of the record. The
 * two are never confused, since the first is waited for and the second is a dead letter.
 */
@NullMarked
package dev.millrace.schemas.registry;

import org.jspecify.annotations.NullMarked;
