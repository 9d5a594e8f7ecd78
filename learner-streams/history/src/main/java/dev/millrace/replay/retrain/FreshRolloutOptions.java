package dev.millrace.replay.retrain;

/**
 * Says that courses learn from rollouts of their own.
 *
 * @param sampling shared by all courses
 * @param draws 0 for the recorded draws, so that the run's own course samples the recorded rollouts again; others for other ones
 */
public record FreshRolloutOptions(FreshRollouts sampling, long draws) {}
