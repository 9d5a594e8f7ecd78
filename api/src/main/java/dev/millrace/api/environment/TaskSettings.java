package dev.millrace.api.environment;

/**
 * Settings of a task. Extension point. {@code task: inc} or {@code task: {kind: inc,
 * digits: 7}} chooses one.
 *
 * <p>Equal records give tasks with the same prompts and episodes on every machine.
 */
public interface TaskSettings {

    /** Creates the task. Called often, also on machines that only read a run: defer costly work to the first prompt. */
    Task task();
}
