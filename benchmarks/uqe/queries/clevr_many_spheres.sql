SELECT id FROM labels WHERE spheres > 3
