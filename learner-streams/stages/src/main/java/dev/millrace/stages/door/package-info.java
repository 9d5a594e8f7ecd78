/**
 * Which stages, objectives and estimators there are to choose for an algorithm, by name.
 *
 * <p>The mathematics depends on nothing, so the names under which its records come through the doors are here.
 */
@NullMarked
package dev.millrace.stages.door;

import org.jspecify.annotations.NullMarked;
