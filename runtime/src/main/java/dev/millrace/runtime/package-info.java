/**
 * A whole run in one process: configuration, roles, what is measured, and what is left behind.
 *
 * <p>{@link dev.millrace.runtime.Millrace} is the door for programs that train without the command line:
 *
 * <pre>{@code
 * MillraceConfig config = new ConfigLayers()
 *         .yaml("task: {kind: sort, digits: 2}", "the example")
 *         .set("learner.max_steps=3")
 *         .resolve();
 * RunResult result = new Millrace(config).in(folder).run();
 * double reward = result.summary().steps().get(2).reward();
 * }</pre>
 *
 * <p>That starts a Kafka broker in this process, with its data in the folder. With {@code run.bootstrap_servers} the run's topics are on
 * a cluster, and whoever knows its name can ask it, replay it, or take part in it from there.
 */
@NullMarked
package dev.millrace.runtime;

import org.jspecify.annotations.NullMarked;
