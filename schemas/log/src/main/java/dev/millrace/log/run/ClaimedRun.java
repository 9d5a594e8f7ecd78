package dev.millrace.log.run;

import dev.millrace.schemas.run.RunIdentity;
import java.util.Optional;

/**
 * What the claim of a topic prefix says.
 *
 * @param run whose it is
 * @param configuration what the run computes, as its creator recorded it; empty if nobody did
 * @param before whether the claim was there before it was asked for
 */
public record ClaimedRun(RunIdentity run, Optional<String> configuration, boolean before) {}
