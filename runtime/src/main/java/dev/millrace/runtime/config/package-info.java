/**
 * The configuration of a run as people write it, turned into the immutable records that each part asks for.
 *
 * <p>The path of record components is the key. A value is checked by the record that holds it, once, when it is made; an
 * unknown key, a value out of bounds and a contradiction are refused before anything starts. Texts travel no further than
 * this package.
 */
@NullMarked
package dev.millrace.runtime.config;

import org.jspecify.annotations.NullMarked;
