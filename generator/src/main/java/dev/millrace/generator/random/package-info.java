/** Randomness that does not depend on the order in which things happen. */
package dev.millrace.generator.random;
