/**
 * Makes the roles of a run out of its configuration and runs them, each on a thread of its own.
 *
 * <p>Roles are stopped in the order in which they were started, so that whoever feeds ends before whoever is fed. A role
 * that ends when it should not stops the others.
 */
@NullMarked
package dev.millrace.runtime.pipeline;

import org.jspecify.annotations.NullMarked;
