package dev.millrace.generator.sampling;

/** What became of a record on the prompts topic: work, or a dead letter. */
public sealed interface PromptReading permits AcceptedPrompt, RefusedPrompt {}
