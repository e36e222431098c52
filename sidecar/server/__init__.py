"""The process: start-up, life cycle, services, settings and shutdown."""
