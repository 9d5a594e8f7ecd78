/**
 * What a task decides by, as a text that outlives the classes it comes from, and the fingerprint of that text.
 *
 * <p>The text has a line for each setting, under the key that users know, in an order and a spelling that depend on nothing
 * else. So renaming a class changes nothing, a key that was added later changes nothing where it leaves the decisions as they
 * were, and two texts say by themselves in which settings they differ. The rules are a numbered form; a change of the rules
 * is a new form with a translation, so that older texts stay comparable.
 */
@NullMarked
package dev.millrace.topology.settings;

import org.jspecify.annotations.NullMarked;
