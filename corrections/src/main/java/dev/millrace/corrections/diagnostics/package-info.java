/**
 * Diagnoses how far off-policy data is, why, and the smallest fix.
 *
 * <p>{@link dev.millrace.corrections.diagnostics.OffPolicyDiagnostics} measures one batch, in all and per version
 * lag. {@link dev.millrace.corrections.diagnostics.DecisionTree} reads a window of such measurements and names a
 * cause with its evidence. Nothing here changes a batch.
 */
@NullMarked
package dev.millrace.corrections.diagnostics;

import org.jspecify.annotations.NullMarked;
