/**
 * Length: whether a rejection is really a rejection of long answers, what a length costs, and what more samples would
 * bring.
 *
 * <p>The length of a sequence is its number of trained tokens: context is not the policy's doing. Everything here is
 * per sequence or per problem; nothing changes a mask or a weight.
 */
@NullMarked
package dev.millrace.corrections.length;

import org.jspecify.annotations.NullMarked;
