/**
 * Makes the roles of a run out of its configuration and runs them, each on a thread of its own.
 *
 * <p>Roles stop in start order, so that producers end before their consumers. A role that ends unexpectedly stops the others.
 */
@NullMarked
package dev.millrace.runtime.pipeline;

import org.jspecify.annotations.NullMarked;
